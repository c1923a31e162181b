//go:build !linux

package testenv

func probeNetworkNamespace() error { return system(false) }
func probeMountNamespace() error   { return system(false) }
func probeVXLAN() error            { return system(false) }
func probeTimeNamespace() error    { return system(false) }
func probeRoot() error             { return system(false) }
func probeLab() error              { return system(false) }
func probeICMP() error             { return system(false) }
func probeManyFiles() error        { return system(false) }
func probeBPF() error              { return system(false) }
func probeCgroup() error           { return system(false) }
func probeCPUQuota() error         { return system(false) }
