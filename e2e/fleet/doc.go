// Package fleet tests fullpipe-hub and its agents as programs, in network namespaces with real TCP.
package fleet
