import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/pages.css";
import { App } from "./app";
import { start } from "./state/fleet";

const place = document.getElementById("console");
if (place) {
  start();
  render(<App />, place);
}
