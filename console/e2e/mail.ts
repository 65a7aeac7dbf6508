import { createServer, type Server, type Socket } from "node:net";

/** A mail server that takes everything and keeps it. */
export class MailSink {
  readonly messages: string[] = [];
  private constructor(
    private readonly server: Server,
    readonly port: number,
  ) {}

  static listen(): Promise<MailSink> {
    return new Promise((resolve, reject) => {
      const server = createServer();
      server.once("error", reject);
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        const sink = new MailSink(server, typeof address === "object" && address !== null ? address.port : 0);
        server.on("connection", (socket) => sink.talk(socket));
        resolve(sink);
      });
    });
  }

  private talk(socket: Socket): void {
    let text = "";
    let message: string[] | null = null;
    const say = (line: string) => socket.write(`${line}\r\n`);
    socket.on("error", () => socket.destroy());
    say("220 sink ESMTP");
    socket.on("data", (part) => {
      text += part.toString();
      for (let end = text.indexOf("\r\n"); end >= 0; end = text.indexOf("\r\n")) {
        const line = text.slice(0, end);
        text = text.slice(end + 2);
        if (message !== null) {
          if (line === ".") {
            this.messages.push(message.join("\n"));
            message = null;
            say("250 kept");
          } else message.push(line);
        } else if (/^DATA/i.test(line)) {
          message = [];
          say("354 go on");
        } else if (/^QUIT/i.test(line)) {
          say("221 bye");
          socket.end();
        } else say("250 sink");
      }
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.server.close(() => resolve()));
  }
}
