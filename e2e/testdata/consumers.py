"""What programs from PyPI read of iperf3's output: figures as one JSON object.

consumers.py read FILE         the wrapper iperf3 and the poller wiperf, of what iperf3 --json printed
consumers.py test HOST PORT    uiperf3 as a client of an iperf3 server
"""

import json
import logging
import sys


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
    print(json.dumps({"iperf3": figures, "wiperf": exported}))


def test(host, port):
    import uiperf3

    found = uiperf3.socket.getaddrinfo
    uiperf3.socket.getaddrinfo = lambda h, _, *more: found(h, int(port), *more)
    uiperf3.client(host)


{"read": read, "test": test}[sys.argv[1]](*sys.argv[2:])
