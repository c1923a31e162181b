// Package interop tests fullpipe with the programs of others: iperf3, iperf 2, ssh and nginx.
package interop
