//go:build linux

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// Addresses in tunnels that a test makes.
const nearTunnel, farTunnel = "10.9.0.1", "10.9.0.2"

// The packet sizes that plan --vpn computes match the link's counters: packets of many sizes through the lab's
// gateways, WireGuard, OpenVPN and, if the kernel has it, VXLAN. ESP, GRE and GENEVE were not available.
func TestLab_TunnelPacketSizes(t *testing.T) {
	for _, test := range []struct {
		path, tunnel string
		start        func(t *testing.T, l *Lab, mtu int) // nil: the path has it
	}{
		{"vpn=wireguard/1440", "wireguard", nil}, // over IPv4, which leaves 20 bytes more than wg-quick's
		{"vpn=gateway,crypto=10mbit", "ipsec:aes256-cbc-sha1", nil},
		{"", "vxlan", startVXLAN}, {"", "openvpn", startOpenVPN},
	} {
		t.Run(test.tunnel, func(t *testing.T) {
			t.Parallel()
			tunnel := must.Get(model.ParseTunnel(test.tunnel))(t)
			const path = 1500
			inner := tunnel.MTU(path)
			l := startLab(t, strings.TrimSuffix("rate=20mbit,rtt=1ms,"+test.path, ","))
			to := "$FULLPIPE_FAR"
			if test.start != nil {
				test.start(t, l, inner)
				to = "-I " + nearTunnel + " " + farTunnel // far also replies on the plain path before the tunnel is up
			}
			ping := func(packet int, seconds float64) bool {
				_, err := l.Near.Output("sh", "-c", fmt.Sprintf("ping -n -c 1 -W %g -s %d -M do %s", seconds, packet-28, to))
				return err == nil
			}
			const late = 50                                   // s: a packet that takes as long is lost
			if !poll(func() bool { return ping(100, 0.2) }) { // address resolution and key exchange come first
				t.Fatal("nothing gets through")
			}
			awaitQuiet(t, l)
			for _, packet := range []int{28, 29, 41, 63, 64, 65, 100, 576, 1000, 1279, 1337, inner - 17, inner - 1, inner} {
				before, _, err := l.Counters()
				if err != nil {
					t.Fatal(err)
				}
				if !ping(packet, late) {
					t.Errorf("a packet of %d bytes was lost", packet)
					continue
				}
				after, _, err := l.Counters()
				if err != nil {
					t.Fatal(err)
				}
				n, bytes := after.Carried-before.Carried, after.CarriedBytes-before.CarriedBytes
				if want := tunnel.Carry(packet, path); n != 1 || bytes != int64(want) {
					t.Errorf("%d bytes travelled in %d packets of %d bytes, want one of %d", packet, n, bytes, want)
				}
			}
			if ping(inner+1, late) {
				t.Errorf("%d bytes got through, %d are planned", inner+1, inner)
			}
		})
	}
}

// awaitQuiet waits until only the test's own packets are in flight.
func awaitQuiet(t *testing.T, l *Lab) {
	t.Helper()
	last := int64(-1)
	if !poll(func() bool {
		up, down, err := l.Counters()
		if err != nil {
			t.Fatal(err)
		}
		now := up.Carried + down.Carried
		quiet := now == last
		last = now
		<-time.After(300 * time.Millisecond)
		return quiet
	}) {
		t.Fatal("the tunnel never falls silent")
	}
}

// startVXLAN connects the hosts by the kernel's VXLAN, with static neighbours.
func startVXLAN(t *testing.T, l *Lab, mtu int) {
	t.Helper()
	testenv.Need(t, testenv.VXLAN)
	for i, end := range []struct {
		*End
		peer string
	}{{l.Near, "FAR"}, {l.Far, "NEAR"}} {
		own, other := i+1, 2-i
		script := fmt.Sprintf("ip link add v0 mtu %d address 02:00:00:00:00:0%d type vxlan id 7 remote $FULLPIPE_%s "+
			"dstport 4789 noudpcsum && ip addr add 10.9.0.%d/24 dev v0 && "+
			"sysctl -qw net.ipv6.conf.v0.disable_ipv6=1 && ip link set v0 up && "+
			"ip neigh replace 10.9.0.%d lladdr 02:00:00:00:00:0%d dev v0 nud permanent", mtu, own, end.peer, own, other, other)
		if out, err := end.Output("sh", "-c", script); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
}

// startOpenVPN connects the hosts by OpenVPN with AES-256-GCM; each verifies the other's certificate.
func startOpenVPN(t *testing.T, l *Lab, mtu int) {
	t.Helper()
	program := testenv.Program(t, testenv.OpenVPN)
	dir := t.TempDir()
	nearPrint, farPrint := selfSigned(t, dir, "near"), selfSigned(t, dir, "far")
	common := fmt.Sprintf("--dev tun --proto udp --port 1194 --data-ciphers AES-256-GCM --tun-mtu %d --mssfix 0 "+
		"--disable-dco --allow-compression no --verb 1", mtu)
	start := func(end *End, name, options string) {
		args := append([]string{program}, strings.Fields(common+" "+options)...)
		args = append(args, "--cert", filepath.Join(dir, name+".crt"), "--key", filepath.Join(dir, name+".key"))
		must.Get(end.Start(Command{Args: args}))(t)
	}
	start(l.Far, "far", "--tls-server --dh none --ifconfig "+farTunnel+" "+nearTunnel+" --peer-fingerprint "+nearPrint)
	listens := func() bool {
		_, err := l.Far.Output("grep", "-q", ":04AA ", "/proc/net/udp", "/proc/net/udp6")
		return err == nil
	}
	if !poll(listens) { // otherwise near retries only after seconds
		t.Fatal("openvpn does not listen")
	}
	start(l.Near, "near", "--tls-client --remote "+l.Far.Addr.String()+" --ifconfig "+nearTunnel+" "+farTunnel+
		" --peer-fingerprint "+farPrint)
}

// selfSigned writes a certificate and its key and returns the certificate's fingerprint.
func selfSigned(t *testing.T, dir, name string) string {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: certificate},
		name + ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		must.Do(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600))
	}
	sum := sha256.Sum256(certificate)
	return strings.ReplaceAll(strings.ToUpper(fmt.Sprintf("% x", sum)), " ", ":")
}
