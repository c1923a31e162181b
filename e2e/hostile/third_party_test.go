//go:build linux

package hostile

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestHostileHub_ThirdParty has a hub order an agent to connect to another host as fast as it can, for 3 s to an open
// port and for 3 s to a closed one. The host counts: at most 16 connections of each of 30 orders at once and one a
// second; before the agents' own limit it was 14,000 connections. The hub learns nothing that the host says.
func TestHostileHub_ThirdParty(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.NetworkNamespace, testenv.MountNamespace)
	t.Parallel()
	if !testenv.Inside(t, unix.CLONE_NEWNET|unix.CLONE_NEWNS) {
		return
	}
	command := func(line string) string {
		t.Helper()
		words := strings.Fields(line)
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
		return string(out)
	}
	command("mount -t tmpfs none /run")
	if err := os.Mkdir("/run/netns", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ip netns add third", "ip link add near type veth peer name far netns third",
		"ip addr add 192.0.2.9/24 dev near", "ip link set near up", "ip -n third addr add 192.0.2.77/24 dev far",
		"ip -n third link set far up"} {
		command(line)
	}
	var host net.Listener
	err := harness.InNamespace("third", func() (err error) {
		host, err = net.Listen("tcp", "192.0.2.77:22")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	go func() {
		for {
			conn, err := host.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-third-party\r\n"))
			time.AfterFunc(5*time.Second, func() { conn.Close() })
		}
	}()

	over := make(chan bool)
	hub, err := harness.StartHostile(harness.HostileProgram(t), "hub-order-strangers", os.Environ(),
		func() { close(over) })
	if err != nil {
		t.Fatal(err)
	}
	limits := filepath.Join(t.TempDir(), "limits.toml")
	if err := os.WriteFile(limits, []byte("peers = [\"192.0.2.0/24\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(harness.Program(t), "agent", "--json", "--join", hub.Address, "--name", "victim", "--listen",
		"127.0.0.1:0", "--address", "192.0.2.9", "--limits", limits)
	agent.Env = append(os.Environ(), "FULLPIPE_STATE="+t.TempDir())
	began := time.Now()
	harness.StartCommand(t, agent)
	select {
	case <-over:
	case <-time.After(2 * time.Minute):
		t.Fatal("the attack did not take place")
	}
	text := hub.End()
	if strings.Contains(text, "ADMITTED") {
		t.Error(text)
	}
	most := 16 * (31 + int(time.Since(began)/time.Second))
	tcp := counters(command("ip netns exec third cat /proc/net/snmp"))
	open := tcp["PassiveOpens"]
	closed := tcp["OutRsts"]
	t.Logf("%d connections to the open port; %d resets, of the closed one and others; at most %d", open, closed, most)
	if open == 0 || closed == 0 || open > most || closed > most {
		t.Errorf("%d connections and %d resets, at most %d each", open, closed, most)
	}
}

// counters returns the TCP counters of /proc/net/snmp.
func counters(text string) map[string]int {
	all := map[string]int{}
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case fields[0] != "Tcp:":
		case names == nil:
			names = fields
		default:
			for i, field := range fields[1:] {
				all[names[i+1]], _ = strconv.Atoi(field)
			}
		}
	}
	return all
}
