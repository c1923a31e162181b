package plan

import (
	"encoding/xml"
	"fmt"
	"net/netip"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

// sysctl is a file of /etc/sysctl.d on Linux, lines of /etc/sysctl.conf on the BSDs.
func (p *Plan) sysctl(undo bool) []byte {
	target, _ := ParseTarget(p.Target)
	file := "/etc/sysctl.d/90-fullpipe.conf"
	load := "sysctl --load="
	equals := " = "
	if target.Family == catalog.FreeBSD || target.Family == catalog.NetBSD {
		file = "/etc/sysctl.conf"
		load = "sysctl -f "
		equals = "="
	}
	b := &strings.Builder{}
	b.WriteString(p.headline("#", undo))
	if undo {
		fmt.Fprintf(b, "# remove the plan from %s, then load this file: %sFILE\n", file, load)
	} else {
		fmt.Fprintf(b, "# keep it in %s; now: %sFILE\n", file, load)
	}
	b.WriteString(p.nothing("#"))
	for _, s := range p.Settings {
		value := s.Value
		if undo {
			value = p.old(s)
		}
		fmt.Fprintf(b, "%s%s%s%s\n", roleComment("#", s), s.Name, equals, value)
	}
	return []byte(b.String())
}

// launchDaemon writes a property list that sets the values at every start of macOS. The undo is a shell script.
func (p *Plan) launchDaemon(undo bool) []byte {
	const label = "net.fullpipe.sysctl"
	b := &strings.Builder{}
	if undo {
		b.WriteString("#!/bin/sh\n" + p.headline("#", true))
		fmt.Fprintf(b, "launchctl bootout system/%s\nrm -f /Library/LaunchDaemons/%s.plist\n", label, label)
		for _, s := range p.Settings {
			fmt.Fprintf(b, "sysctl %s=%s\n", s.Name, p.old(s))
		}
		return []byte(b.String())
	}
	b.WriteString(xml.Header)
	b.WriteString(
		`<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n<!--\n")
	b.WriteString(strings.ReplaceAll(p.headline("    ", false), "--", "- -"))
	fmt.Fprintf(b, "     keep it in /Library/LaunchDaemons/%s.plist, owner root, mode 644; now:\n", label)
	fmt.Fprintf(b, "     launchctl bootstrap system /Library/LaunchDaemons/%s.plist\n-->\n", label)
	b.WriteString("<plist version=\"1.0\">\n<dict>\n\t<key>Label</key>\n\t<string>" + label + "</string>\n" +
		"\t<key>RunAtLoad</key>\n\t<true/>\n\t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>" +
		"/usr/sbin/sysctl</string>\n")
	for _, s := range p.Settings {
		fmt.Fprintf(b, "\t\t<string>%s=%s</string>\n", s.Name, s.Value)
	}
	b.WriteString("\t</array>\n</dict>\n</plist>\n")
	return []byte(b.String())
}

// route is the prefix with its next hop, as `ip route` writes it.
func (p *Plan) route() string {
	text := p.Route.Prefix
	if p.Route.Via != "" {
		text += " via " + p.Route.Via
	}
	if p.Route.Dev != "" {
		text += " dev " + p.Route.Dev
	}
	return text
}

func (p *Plan) attributes(between string) string {
	var words []string
	for _, s := range p.Settings {
		words = append(words, s.Name+between+s.Value)
	}
	return strings.Join(words, " ")
}

// ipRoute is a command for now; a restart of the network forgets it.
func (p *Plan) ipRoute(undo bool) []byte {
	text := p.headline("#", undo) + "# the route has to be there with exactly this next hop: ip route show " +
		p.Route.Prefix + "\n"
	command := "ip route change " + p.route()
	if !undo {
		command += " " + p.attributes(" ")
	}
	return []byte(text + command + "\n")
}

// networkd is a drop-in for a .network file of systemd.
func (p *Plan) networkd(undo bool) []byte {
	b := &strings.Builder{}
	b.WriteString(p.headline("#", undo))
	const file = "/etc/systemd/network/NAME.network.d/fullpipe.conf"
	if undo {
		fmt.Fprintf(b, "rm %s\nnetworkctl reload\n", file)
		return []byte(b.String())
	}
	fmt.Fprintf(b, "# keep it in %s; then: networkctl reload\n", file)
	fmt.Fprintf(b, "[Route]\nDestination=%s\n", networkdPrefix(p.Route.Prefix, p.Route.Via))
	if p.Route.Via != "" {
		fmt.Fprintf(b, "Gateway=%s\n", p.Route.Via)
	}
	for _, s := range p.Settings {
		switch s.Name {
		case "initcwnd":
			fmt.Fprintf(b, "InitialCongestionWindow=%s\n", s.Value)
		case "initrwnd":
			fmt.Fprintf(b, "InitialAdvertisedReceiveWindow=%s\n", s.Value)
		case "congctl":
			fmt.Fprintf(b, "TCPCongestionControlAlgorithm=%s\n", s.Value)
		default:
			fmt.Fprintf(b, "# networkd cannot say %s %s: use --format ip-route\n", s.Name, s.Value)
		}
	}
	return []byte(b.String())
}

// networkdPrefix names the default route by the family of its gateway.
func networkdPrefix(prefix, via string) string {
	if prefix != "default" {
		return prefix
	}
	if gateway, err := netip.ParseAddr(via); err == nil && gateway.Is6() {
		return "::/0"
	}
	return "0.0.0.0/0"
}

// netplan is a file of /etc/netplan.
func (p *Plan) netplan(undo bool) []byte {
	b := &strings.Builder{}
	b.WriteString(p.headline("#", undo))
	if undo {
		b.WriteString("rm /etc/netplan/90-fullpipe.yaml\nnetplan apply\n")
		return []byte(b.String())
	}
	b.WriteString("# keep it in /etc/netplan/90-fullpipe.yaml, mode 600; then: netplan try\n")
	dev := p.Route.Dev
	if dev == "" {
		dev = "DEV"
		b.WriteString("# replace DEV by the interface, or give it with --dev\n")
	}
	fmt.Fprintf(b, "network:\n  version: 2\n  ethernets:\n    %s:\n      routes:\n        - to: %s\n", dev, p.Route.Prefix)
	if p.Route.Via != "" {
		fmt.Fprintf(b, "          via: %q\n", p.Route.Via)
	} else {
		b.WriteString("          scope: link\n")
	}
	for _, s := range p.Settings {
		switch s.Name {
		case "initcwnd":
			fmt.Fprintf(b, "          congestion-window: %s\n", s.Value)
		case "initrwnd":
			fmt.Fprintf(b, "          advertised-receive-window: %s\n", s.Value)
		default:
			fmt.Fprintf(b, "          # netplan cannot say %s %s: use --format ip-route\n", s.Name, s.Value)
		}
	}
	return []byte(b.String())
}

// networkManager changes a connection's static routes with nmcli.
func (p *Plan) networkManager(undo bool) []byte {
	family := "ipv4"
	if strings.Contains(p.Route.Prefix+p.Route.Via, ":") {
		family = "ipv6"
	}
	route := networkdPrefix(p.Route.Prefix, p.Route.Via)
	if p.Route.Via != "" {
		route += " " + p.Route.Via
	}
	b := &strings.Builder{}
	b.WriteString(p.headline("#", undo))
	b.WriteString("# replace CONNECTION by the connection's name: nmcli connection show\n")
	var left []string
	words := route
	for _, s := range p.Settings {
		if s.Name == "congctl" {
			left = append(left, fmt.Sprintf("# NetworkManager cannot say %s %s: use --format ip-route\n", s.Name, s.Value))
			continue
		}
		words += " " + s.Name + "=" + s.Value
	}
	sign := "+"
	if undo {
		sign = "-"
		left = nil
	}
	fmt.Fprintf(b, "%snmcli connection modify CONNECTION %s%s.routes '%s'\nnmcli connection up CONNECTION\n",
		strings.Join(left, ""), sign, family, words)
	return []byte(b.String())
}
