// Package interop tests fullpipe with the programs of others: iperf3, iperf 2, ssh, nginx, Prometheus, Wine, and
// with its own earlier versions.
package interop
