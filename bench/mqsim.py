#!/usr/bin/python3
"""Runs MQSim (Tavakkol et al., FAST 2018) on devices that OpenVSL models too, for bench/simulation.py and examples/notebooks/mqsim.ipynb.

MQSim is github.com/CMU-SAFARI/MQSim: its README says how it is built. This file writes its two input files and reads its output file.

`bench/mqsim.py MQSIM contention` prints what examples/notebooks/mqsim.json holds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Parameters: TypeAlias = Mapping[str, object]

HOST: Parameters = {
    "PCIe_Lane_Bandwidth": 1.0,
    "PCIe_Lane_Count": 4,
    "SATA_Processing_Delay": 400_000,
    "Enable_ResponseTime_Logging": "false",
    "ResponseTime_Logging_Period_Length": 1_000_000,
}
# The geometry of the data sheet `mqsim-reference`, with the whole map in memory, as OpenVSL has it. Preemptible collection ends such a
# run with an inconsistency that MQSim finds in itself, so it is off.
DEVICE: Parameters = {
    "Seed": 321,
    "Enabled_Preconditioning": "true",
    "Memory_Type": "FLASH",
    "HostInterface_Type": "NVME",
    "IO_Queue_Depth": 65_535,
    "Queue_Fetch_Size": 512,
    "Caching_Mechanism": "SIMPLE",
    "Data_Cache_Sharing_Mode": "SHARED",
    "Data_Cache_Capacity": 4_194_304,
    "Data_Cache_DRAM_Row_Size": 8_192,
    "Data_Cache_DRAM_Data_Rate": 1_600,
    "Data_Cache_DRAM_Data_Busrt_Size": 4,  # MQSim's spelling
    "Data_Cache_DRAM_tRCD": 13,
    "Data_Cache_DRAM_tCL": 13,
    "Data_Cache_DRAM_tRP": 13,
    "Address_Mapping": "PAGE_LEVEL",
    "Ideal_Mapping_Table": "true",
    "CMT_Capacity": 2_097_152,
    "CMT_Sharing_Mode": "SHARED",
    "Plane_Allocation_Scheme": "CWDP",
    "Transaction_Scheduling_Policy": "PRIORITY_OUT_OF_ORDER",
    "Overprovisioning_Ratio": 0.2,  # of all flash: 25 % of what the host sees
    "GC_Exec_Threshold": 0.05,
    "GC_Block_Selection_Policy": "GREEDY",
    "Use_Copyback_for_GC": "false",
    "Preemptible_GC_Enabled": "false",
    "GC_Hard_Threshold": 0.005,
    "Dynamic_Wearleveling_Enabled": "true",
    "Static_Wearleveling_Enabled": "false",
    "Static_Wearleveling_Threshold": 100,
    "Preferred_suspend_erase_time_for_read": 700_000,
    "Preferred_suspend_erase_time_for_write": 700_000,
    "Preferred_suspend_write_time_for_read": 100_000,
    "Flash_Channel_Count": 8,
    "Flash_Channel_Width": 1,
    "Channel_Transfer_Rate": 333,
    "Chip_No_Per_Channel": 2,
    "Flash_Comm_Protocol": "NVDDR2",
}
CELLS = ("LSB", "CSB", "MSB")
FLASH: Parameters = {
    "Flash_Technology": "MLC",
    "CMD_Suspension_Support": "NONE",
    **{f"Page_Read_Latency_{cell}": 75_000 for cell in CELLS},
    **{f"Page_Program_Latency_{cell}": 750_000 for cell in CELLS},
    "Block_Erase_Latency": 3_800_000,
    "Block_PE_Cycles_Limit": 10_000,
    "Suspend_Erase_Time": 700_000,
    "Suspend_Program_Time": 100_000,
    "Die_No_Per_Chip": 1,
    "Plane_No_Per_Die": 2,
    "Block_No_Per_Plane": 128,
    "Page_No_Per_Block": 256,
    "Page_Capacity": 4_096,
    "Page_Metadat_Capacity": 448,  # MQSim's spelling
}
FLOW: Parameters = {
    "Priority_Class": "HIGH",
    "Device_Level_Data_Caching_Mode": "TURNED_OFF",
    "Channel_IDs": "0,1,2,3,4,5,6,7",
    "Chip_IDs": "0,1",
    "Die_IDs": "0",
    "Plane_IDs": "0,1",
    "Initial_Occupancy_Percentage": 100,
    "Working_Set_Percentage": 100,
    "Synthetic_Generator_Type": "QUEUE_DEPTH",
    "Read_Percentage": 0,
    "Address_Distribution": "RANDOM_UNIFORM",
    "Percentage_of_Hot_Region": 0,
    "Generated_Aligned_Addresses": "true",
    "Address_Alignment_Unit": 8,  # sectors of 512 bytes, here and below
    "Request_Size_Distribution": "FIXED",
    "Average_Request_Size": 8,
    "Variance_Request_Size": 0,
    "Seed": 798,
    "Average_No_of_Reqs_in_Queue": 32,
    "Intensity": 32_768,
    "Stop_Time": 0,  # ns; 0: so many requests
    "Total_Requests_To_Generate": 100_000,
}


@dataclass(frozen=True)
class Flow:
    """What one flow of requests came to."""

    asked: int
    answered: int
    iops: float
    bytes_per_second: float
    mean_us: float


@dataclass(frozen=True)
class Run:
    """What a run came to, and what it took."""

    cpu_seconds: float
    peak_bytes: int
    flows: tuple[Flow, ...]
    programmed_pages: int


def measured(command: list[str], output: Path) -> tuple[float, int]:
    """Runs a command: its CPU seconds, and the most memory that it had."""
    with output.open("w") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    # What `wait4` says of memory includes this process, of which the other was a copy before it began.
    peak, ended = 0, 0
    while not ended:
        time.sleep(0.01)
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                peak = int(line.split()[1]) * 1024
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {output.read_text()[-200:]}")
    return used.ru_utime + used.ru_stime, peak


def run(binary: Path, flows: Iterable[Parameters], device: Parameters = {}, flash: Parameters = {}, host: Parameters = {}) -> Run:
    """Runs flows side by side. Parameters that are not given are those of the top of this file."""
    flash_set = _element("Flash_Parameter_Set", {**FLASH, **flash})
    device_set = _element("Device_Parameter_Set", {**DEVICE, **device}, flash_set)
    whole = _element("Execution_Parameter_Set", {}, _element("Host_Parameter_Set", {**HOST, **host}), device_set)
    scenario = _element("IO_Scenario", {}, *(_element("IO_Flow_Parameter_Set_Synthetic", {**FLOW, **flow}) for flow in flows))
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        ElementTree.ElementTree(whole).write(directory / "ssd.xml")
        ElementTree.ElementTree(_element("MQSim_IO_Scenarios", {}, scenario)).write(directory / "load.xml")
        output = directory / "output"
        cpu, peak = measured([str(binary), "-i", f"{directory}/ssd.xml", "-w", f"{directory}/load.xml"], output)
        if not (directory / "load_scenario_1.xml").exists():  # MQSim ends with success whatever happened.
            raise RuntimeError(f"{binary} left no result: {output.read_text()[-200:]}")
        results = ElementTree.parse(directory / "load_scenario_1.xml").getroot()
    [layer] = results.iter("SSDDevice.FTL")
    programmed = int(layer.get("Issued_Flash_Program_CMD", 0)) + 2 * int(layer.get("Issued_Flash_Multiplane_Program_CMD", 0))
    sectors = [int(str({**FLOW, **flow}["Average_Request_Size"])) for flow in flows]
    return Run(cpu, peak, tuple(_flow(of, size) for of, size in zip(results.iter("Host.IO_Flow"), sectors, strict=True)), programmed)


def _flow(of: ElementTree.Element, sectors: int) -> Flow:
    def figure(name: str) -> float:
        return float(of.findtext(name) or "nan")

    answered = round(figure("Bytes_Transferred") / sectors / 512)
    return Flow(int(figure("Request_Count")), answered, figure("IOPS"), figure("Bandwidth"), figure("Device_Response_Time"))


def _element(name: str, parameters: Parameters, *children: ElementTree.Element) -> ElementTree.Element:
    element = ElementTree.Element(name)
    for parameter, value in parameters.items():
        ElementTree.SubElement(element, parameter).text = str(value)
    element.extend(children)
    return element


# The paper's experiment on contention in the back end: two flows of random reads share all dies, and the second asks for ever more. Page,
# dies and the fetch size are those of the files in MQSim's directory fast18.
CONTENTION_DEVICE: Parameters = {"Enabled_Preconditioning": "false", "Caching_Mechanism": "ADVANCED", "Overprovisioning_Ratio": 0.07}
CONTENTION_FLASH: Parameters = {"Die_No_Per_Chip": 2, "Page_Capacity": 8_192, "Block_No_Per_Plane": 256}
CONTENTION_FLOW: Parameters = {
    "Device_Level_Data_Caching_Mode": "WRITE_CACHE",
    "Die_IDs": "0,1",
    "Initial_Occupancy_Percentage": 75,
    "Working_Set_Percentage": 50,
    "Read_Percentage": 100,
    "Address_Alignment_Unit": 16,
    "Stop_Time": 2_000_000_000,
}
DEPTHS = (2, 4, 8, 16, 32, 64, 128, 256)


def contention(binary: Path) -> dict[str, object]:
    """Mean response times of both flows, us: alone, and side by side."""

    def means(*depths: int) -> list[float]:
        flows = [
            {**CONTENTION_FLOW, "Average_No_of_Reqs_in_Queue": depth, "Seed": seed} for depth, seed in zip(depths, (798, 6533))
        ]
        return [flow.mean_us for flow in run(binary, flows, CONTENTION_DEVICE, CONTENTION_FLASH).flows]

    rows = []
    for depth in DEPTHS:
        first, second = means(2, depth)
        [alone] = means(depth)
        rows.append({"second_depth": depth, "first_us": first, "second_us": second, "second_alone_us": alone})
    return {"first_depth": 2, "first_alone_us": means(2)[0], "rows": rows}


def main() -> None:
    """Prints the figures of an experiment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", type=Path, metavar="MQSIM")
    parser.add_argument("experiment", choices=["contention"])
    options = parser.parse_args()
    print(json.dumps(contention(options.binary.resolve()), indent=1))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
