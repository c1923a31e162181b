"""What programs from PyPI read of iperf3's output: figures as one JSON object.

consumers.py read FILE         the wrapper iperf3, the poller wiperf and iperf3-lib's Prometheus exporter, of what
                               iperf3 --json printed
consumers.py lines PORT ARGS   throughpy, which runs the iperf3 of PATH and reads its text: time, streams
consumers.py both HOST PORT    autoiperf3, which runs the iperf3 of PATH at both ends and reads both documents
consumers.py text FILE         iperflexer, which reads the lines of what iperf3 prints
consumers.py front ARGS        piperf3's command line, which runs the iperf3 of PATH and shows a table
consumers.py test HOST PORT    uiperf3 as a client of an iperf3 server
"""

import importlib.machinery
import json
import logging
import os
import re
import subprocess
import sys
import time
import types


def read(file):
    import iperf3
    from wiperf_poller.testers import iperf3tester

    with open(file) as f:
        result = iperf3.TestResult(f.read())
    kind = result.protocol.lower()
    exported = {}

    class Status:
        def write_status_file(self, _):
            pass

    class Exporter:
        def send_results(self, _, results, *__):
            exported.update(results)
            return True

    class Ping:
        def __init__(self, *_, **__):
            pass

        def ping_host(self, *_, **__):
            return {"rtt_avg": 1.0, "rtt_max": 1.0, "rtt_min": 1.0, "pkts_tx": 1, "pkts_rx": 1}

    tester = iperf3tester.IperfTester(logging.getLogger(), "test")
    iperf3tester.get_timestamp = lambda _: 0
    given = lambda *_, **__: result
    tester.tcp_iperf_client_test = tester.udp_iperf_client_test = given
    tester.calculate_mos = lambda *_: 0
    names = ("duration", "port", "server_hostname", "data_file", "bandwidth")
    iperf3tester.PingTester = Ping
    config = {"iperf3_%s_%s" % (kind, n): "1" for n in names}
    run = getattr(tester, "run_%s_test" % kind)
    run(config, Status(), lambda *_: True, Exporter())
    figures = {k: v for k, v in vars(result).items() if k not in ("json", "text")}
    print(json.dumps({"iperf3": figures, "wiperf": exported, "prometheus": exposed(result.json)}))


class Older(importlib.machinery.SourceFileLoader):
    """iperf3-lib's type statements are of Python 3.12; nothing but annotations uses them."""

    def source_to_code(self, data, path, **more):
        return super().source_to_code(re.sub(rb"(?m)^type (\w+) =.*$", rb"\1 = object", data), path, **more)


def exposed(document):
    """What iperf3-lib's exporter tells Prometheus; the rest of it would load libiperf."""
    root = next(p for p in sys.path if os.path.isdir(os.path.join(p, "iperf3_lib")))
    package = types.ModuleType("iperf3_lib")
    package.__path__ = [os.path.join(root, "iperf3_lib")]
    sys.modules["iperf3_lib"] = package
    sys.path_hooks.insert(0, importlib.machinery.FileFinder.path_hook((Older, [".py"])))
    sys.path_importer_cache.clear()
    from iperf3_lib.exporters.prometheus import render_text
    from iperf3_lib.result import result_from_iperf_json

    result = result_from_iperf_json(document)
    lines = [line.rsplit(" ", 1) for line in render_text(result).splitlines() if not line.startswith("#")]
    metrics = {name: float(value) for name, value in lines}
    # Its doubts about a document: it has no more about ours than about iperf3's.
    metrics["doubts"] = sorted({d.code for d in result.diagnostics if d.code != "provenance.inferred"})
    return metrics


def lines(port, seconds, streams):
    from throughpy import throughpy_data

    # It is of Python 2.7, where a program's output was text.
    throughpy_data.check_output = lambda command, shell: subprocess.check_output(command, shell=shell, text=True)
    asked = types.SimpleNamespace(server="127.0.0.1 -p " + port, time=seconds, data=None)
    print("\n".join(throughpy_data.get_data(streams, asked)))


def front(*args):
    plotting = types.ModuleType("piperf3.plotting")  # its pictures need half a gigabyte of others
    plotting.IperfPlotter = lambda: types.SimpleNamespace(plot_multi_stream_comparison=lambda *_: None)
    sys.modules["piperf3.plotting"] = plotting
    import piperf3

    sys.argv = ["piperf3", *args]
    piperf3.main()


def both(host, port):
    paramiko, strict = types.ModuleType("paramiko"), types.ModuleType("strictyaml")

    class Here:
        """Stands for ssh: the far end's commands run on this host."""

        set_missing_host_key_policy = connect = __exit__ = lambda *_, **__: None

        def __enter__(self):
            return self

        def exec_command(self, line):
            far = subprocess.Popen(line, shell=True, stdout=subprocess.PIPE)
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:  # by the kernel's table: a connection would be the one test
                with open("/proc/net/tcp") as four, open("/proc/net/tcp6") as six:
                    if re.search(r"(?m):%04X \\S+:0000 0A " % int(port), four.read() + six.read()):
                        break
            return None, far.stdout, None

    paramiko.SSHClient, paramiko.AutoAddPolicy = Here, object
    strict.load = lambda *_: None
    for name in ("Map", "Str", "Int", "Optional"):
        setattr(strict, name, lambda *_, **__: None)
    sys.modules.update(paramiko=paramiko, strictyaml=strict)
    config = types.ModuleType("autoiperf3.config")
    config.schema = None
    sys.modules["autoiperf3.config"] = config
    from autoiperf3.__main__ import main

    sys.argv = ["autoiperf3", "-H", host, "-P", port, "-p", "none", "-d", "x", "-f=-n2M"]
    main()


def text(file):
    root = next(p for p in sys.path if os.path.isdir(os.path.join(p, "iperflexer")))
    sys.path.insert(0, os.path.join(root, "iperflexer"))  # it is of Python 2.7, where siblings are found so
    from iperfexpressions import HumanExpression

    found = set()
    with open(file) as f:
        for line in f:
            match = HumanExpression().regex.search(line)
            if match:
                found.add(" ".join(sorted(k for k, v in match.groupdict().items() if v)))
    print(json.dumps(sorted(found)))


def test(host, port):
    import uiperf3

    found = uiperf3.socket.getaddrinfo
    uiperf3.socket.getaddrinfo = lambda h, _, *more: found(h, int(port), *more)
    uiperf3.client(host)


{"read": read, "test": test, "lines": lines, "front": front, "both": both, "text": text}[sys.argv[1]](*sys.argv[2:])
