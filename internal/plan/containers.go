package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/model"
)

// safeSince are the sysctls of a plan that Kubernetes takes from any pod, by the version
// that began to (its documentation, "Using sysctls in a Kubernetes Cluster"; all of them
// ask for Linux 4.15). A kubelet refuses every other one unless --allowed-unsafe-sysctls
// names it.
var safeSince = map[string]string{"net.ipv4.tcp_rmem": "1.32", "net.ipv4.tcp_wmem": "1.32"}

// ofNode says that a sysctl is the host's: in another network namespace it is not there,
// or is read-only (net/core/sysctl_net_core.c).
func ofNode(name string) bool { return strings.HasPrefix(name, "net.core.") }

// inContainer are the plan's settings that belong to a network namespace.
func (p *Plan) inContainer() []Setting {
	return slices.DeleteFunc(slices.Clone(p.Settings), func(s Setting) bool { return ofNode(s.Name) })
}

// containerHead returns the comments that open a text: its purpose, the settings that no container can change, and the
// bytes that an overlay takes of a packet.
func (p *Plan) containerHead(undo bool, notes ...string) string {
	b := &strings.Builder{}
	b.WriteString(p.headline("#", undo))
	for _, note := range notes {
		b.WriteString("# " + note + "\n")
	}
	for _, s := range p.Settings {
		if !ofNode(s.Name) {
			continue
		}
		value := s.Value
		if undo {
			value = p.old(s)
		}
		fmt.Fprintf(b, "# on the node, no container has it: sysctl -w %s=%s\n", s.Name, value)
	}
	if !undo {
		b.WriteString("# " + overlays(p.Path.MSS+p.Path.headers) + "\n")
	}
	return b.String()
}

// overlays says what is left of a packet inside the overlays that container networks use.
func overlays(mtu int) string {
	var parts []string
	for _, name := range []string{"vxlan", "geneve", "ipip", "wireguard"} {
		if tunnel, err := model.ParseTunnel(name); err == nil {
			parts = append(parts, fmt.Sprintf("%s %d", name, tunnel.MTU(mtu)))
		}
	}
	return fmt.Sprintf("an overlay takes its bytes of packets of %d; inside: %s (plan --vpn computes with it)", mtu,
		strings.Join(parts, ", "))
}

// takeOut lists what to remove: a namespace that is made anew copies the host's values
// (net/ipv4/tcp_ipv4.c tcp_sk_init()).
func (p *Plan) takeOut(what string) []byte {
	b := &strings.Builder{}
	b.WriteString(p.containerHead(true,
		"remove these from "+what+" and make it anew: its new namespace copies the node's values"))
	for _, s := range p.inContainer() {
		fmt.Fprintf(b, "#   %s\n", s.Name)
	}
	return []byte(b.String())
}

// kubernetes is a pod's part that sets the values for its network namespace.
func (p *Plan) kubernetes(undo bool) []byte {
	if undo {
		return p.takeOut("the pod's securityContext")
	}
	settings := p.inContainer()
	notes := []string{"of the whole pod; not with hostNetwork: true, where the node's own values hold"}
	var unsafe []string
	for _, s := range settings {
		if since := safeSince[s.Name]; since != "" {
			notes = append(notes, s.Name+": safe since Kubernetes "+since+
				" on Linux 4.15 and later; before: --allowed-unsafe-sysctls on the kubelet")
		} else {
			unsafe = append(unsafe, s.Name)
		}
	}
	if len(unsafe) > 0 {
		names := strings.Join(unsafe, ",")
		notes = append(notes,
			"refused as unsafe (SysctlForbidden) unless the node's kubelet runs with --allowed-unsafe-sysctls="+names)
	}
	return containerText(p.containerHead(false, notes...), settings, "a pod", "spec:\n  securityContext:\n    sysctls:\n",
		"      - name: %s\n        value: %q\n")
}

// containerText is a head and, below an opening, a line for each setting's name and value; or
// that there is nothing to change.
func containerText(head string, settings []Setting, where, opening, line string) []byte {
	if len(settings) == 0 {
		return []byte(head + "# nothing to change in " + where + "\n")
	}
	b := []byte(head + opening)
	for _, s := range settings {
		b = fmt.Appendf(b, line, s.Name, s.Value)
	}
	return b
}

// compose is a service's part of a compose file.
func (p *Plan) compose(undo bool) []byte {
	if undo {
		return p.takeOut("the service")
	}
	head := p.containerHead(false, "not with network_mode: host, where the host's own values apply",
		"replace NAME by the service")
	return containerText(head, p.inContainer(), "a container", "services:\n  NAME:\n    sysctls:\n", "      %s: %q\n")
}

// docker is a command that starts a container with the values; podman takes the same.
func (p *Plan) docker(undo bool) []byte {
	if undo {
		return p.takeOut("the command that starts the container")
	}
	b := &strings.Builder{}
	b.WriteString(p.containerHead(false,
		"not with --network host, where the host's own values apply; podman takes the same",
		"replace IMAGE by the image"))
	b.WriteString("docker run")
	for _, s := range p.inContainer() {
		fmt.Fprintf(b, " \\\n  --sysctl '%s=%s'", s.Name, s.Value)
	}
	b.WriteString(" \\\n  IMAGE\n")
	return []byte(b.String())
}

// systemd is a drop-in for a service that has a network namespace of its own.
func (p *Plan) systemd(undo bool) []byte {
	const file = "/etc/systemd/system/NAME.service.d/fullpipe.conf"
	if undo {
		return []byte(p.containerHead(true) + "rm " + file + "\nsystemctl daemon-reload\nsystemctl restart NAME.service\n")
	}
	head := p.containerHead(false,
		"keep it in "+file+"; then: systemctl daemon-reload && systemctl restart NAME.service",
		"a service without a network namespace of its own has the host's values: use --format sysctl for it",
		"replace NAME by the service and the namespace (ip netns add NAME)")
	return containerText(head, p.inContainer(), "a service", "[Service]\nNetworkNamespacePath=/run/netns/NAME\n",
		"ExecStartPre=+sysctl -w \"%s=%s\"\n")
}

// datagrams raises the host's bounds of what a program that speaks UDP asks for. One that
// asks for whatever there is gets a window's worth: that much may come at once.
func (p *Plan) datagrams(v present, receive, send int) {
	for _, b := range []struct {
		role        Role
		name        string
		want, whole int
	}{{Receiver, "net.core.rmem_max", receive, p.WindowBytes}, {Sender, "net.core.wmem_max", send, p.SendBytes}} {
		if b.want <= 0 {
			continue
		}
		want := b.want
		if want == maxBuffer {
			want = b.whole
		}
		want = min((want+grain-1)/grain*grain, maxBuffer)
		if has, err := strconv.Atoi(v.value(b.name)); err == nil && has >= want {
			continue
		}
		p.set(v, b.role, b.name, strconv.Itoa(want))
	}
}
