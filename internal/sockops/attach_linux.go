package sockops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// maxFollowed limits the new connections between two samples.
const maxFollowed = 16384

// hooks are the attached programs and their shared maps.
type hooks struct {
	bpf.Set
	connections *ebpf.Map // socket cookie → a connection as established
}

func attach(dir string, cfg Config, most ceilings) (*hooks, error) {
	h := &hooks{}
	if err := h.attach(dir, cfg, most); err != nil {
		_ = h.Close() // err says more
		return nil, explain(err)
	}
	return h, nil
}

func (h *hooks) attach(dir string, cfg Config, most ceilings) error {
	rules, err := h.Map(ebpf.MapSpec{
		Name: "rules", Type: ebpf.LPMTrie, KeySize: keySize, ValueSize: ruleSize,
		MaxEntries: uint32(max(len(cfg.Rules), 1)), Flags: unix.BPF_F_NO_PREALLOC,
	})
	if err != nil {
		return err
	}
	for i, rule := range cfg.Rules {
		if err := rules.Put(ruleKey(rule.prefix()), ruleValue(i, most.within(rule.Socket))); err != nil {
			return fmt.Errorf("rule for %s: %w", destination(rule.To), err)
		}
	}
	h.connections, err = h.Map(ebpf.MapSpec{
		Name: "connections", Type: ebpf.Hash, KeySize: 8, ValueSize: connSize, MaxEntries: maxFollowed,
	})
	if err != nil {
		return err
	}
	number := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	asked, err := h.Map(ebpf.MapSpec{
		Name: "asked", Type: ebpf.SkStorage, KeySize: 4, ValueSize: askedSize,
		Flags: unix.BPF_F_NO_PREALLOC | unix.BPF_F_CLONE,
		Key:   number, Value: &btf.Array{Index: number, Type: number, Nelems: askedSize / 4},
	})
	if err != nil {
		return err
	}
	set := noteBuffers(asked.FD(), cfg.IgnoreProgramBuffers)
	if err := h.AttachCgroup(bpf.SetSockOpt, dir, ebpf.CGroupSockopt, ebpf.AttachCGroupSetsockopt, set); err != nil {
		return err
	}
	if cfg.IgnoreProgramBuffers {
		get := returnRequested(asked.FD())
		if err := h.AttachCgroup(bpf.GetSockOpt, dir, ebpf.CGroupSockopt, ebpf.AttachCGroupGetsockopt, get); err != nil {
			return err
		}
	}
	return h.AttachCgroup(bpf.SockOps, dir, ebpf.SockOps, ebpf.AttachCGroupSockOps,
		sockOps(rules.FD(), h.connections.FD(), asked.FD()))
}

// explain separates a missing privilege from a missing feature.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && os.Geteuid() != 0:
		return &NotPermitted{Action: "load eBPF programs", Err: err}
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS):
		return &NotSupported{Feature: "eBPF sock_ops and cgroup sockopt programs (Linux 5.8, CONFIG_CGROUP_BPF)", Err: err}
	}
	return err
}

func ruleKey(p netip.Prefix) []byte {
	key := binary.NativeEndian.AppendUint32(nil, uint32(p.Bits()))
	addr := p.Addr().As16()
	return append(key, addr[:]...)
}

// ruleValue encodes a rule in the layout of settings and the rule constants.
func ruleValue(index int, s transfer.Socket) []byte {
	noDelay := uint32(0)
	if s.NoDelay {
		noDelay = 1
	}
	var v []byte
	for _, n := range []uint32{uint32(s.SendBuffer), uint32(s.ReceiveBuffer), uint32(s.Clamp), uint32(s.MSS), noDelay,
		uint32(math.Ceil(s.PacingBps / 8)), uint32(index)} {
		v = binary.NativeEndian.AppendUint32(v, n)
	}
	return append(v, append([]byte(s.Congestion), make([]byte, congestionSize-len(s.Congestion))...)...)
}

// established is a connection as the sock_ops program records it.
type established struct {
	opened                   bool
	local, remote            netip.AddrPort
	rule                     int
	sendGranted, recvGranted int
	askedSend, askedReceive  int
	at                       time.Duration // CLOCK_MONOTONIC
	congestion               string
}

func parseEstablished(v []byte) (established, error) {
	if len(v) != connSize {
		return established{}, fmt.Errorf("connection record of %d bytes", len(v))
	}
	u32 := func(at int) uint32 { return binary.NativeEndian.Uint32(v[at:]) }
	addr := func(at int) netip.Addr { return netip.AddrFrom16([16]byte(v[at : at+16])).Unmap() }
	return established{
		opened:       u32(connOp) == opActive,
		local:        netip.AddrPortFrom(addr(connLocal), uint16(u32(connLocalPort))),
		remote:       netip.AddrPortFrom(addr(connRemote), uint16(binary.BigEndian.Uint32(v[connRemotePort:]))),
		rule:         int(int32(u32(connRule))),
		sendGranted:  int(u32(connSendGranted)),
		recvGranted:  int(u32(connRecvGranted)),
		askedSend:    int(u32(connSendAsked)),
		askedReceive: int(u32(connRecvAsked)),
		at:           time.Duration(binary.NativeEndian.Uint64(v[connTime:])),
		congestion:   unix.ByteSliceToString(v[connCongestion:]),
	}, nil
}
