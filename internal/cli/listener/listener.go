// Package listener has shared parts of HTTP servers: address flags, access control, pages and metrics.
package listener

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
)

// ListenFlags are the flags of an HTTP address and its access control.
type ListenFlags struct {
	Address, Cert, Key string
	Token, Operator    string      // files of bearer tokens
	Name               string      // name of the flag; "": --listen
	TLS                *tls.Config // from cert and key, set by open; nil: plain HTTP
}

// Check returns an error for conflicting flags. Other hosts need TLS and the token, because responses name this
// host's peers.
func (f *ListenFlags) Check() error {
	at, err := netip.ParseAddrPort(f.Address)
	return cmdflag.Check(
		cmdflag.If(err != nil, "--listen", fmt.Sprintf("%q is not an address with a port", f.Address),
			"--listen 127.0.0.1:9741"),
		cmdflag.If((f.Cert == "") != (f.Key == ""), "--listen-cert", "a certificate and its key are needed",
			"both --listen-cert and --listen-key"),
		cmdflag.If(!at.Addr().IsLoopback() && (f.Cert == "" || f.Token == "" && f.Operator == ""), "--listen",
			fmt.Sprintf("%s is open to other hosts", at),
			"--listen-cert, --listen-key and --listen-token-file with it, or 127.0.0.1"),
	)
}

// Listen returns the listener and the required token, "" for none.
func (f *ListenFlags) Listen(ctx context.Context) (l *net.TCPListener, token string, err error) {
	if err := f.Check(); err != nil {
		return nil, "", err
	}
	return f.Open(ctx)
}

// flag returns the name of a flag.
func (f *ListenFlags) flag(end string) string { return cmp.Or(f.Name, "--listen") + end }

// Open listens without access control.
func (f *ListenFlags) Open(ctx context.Context) (l *net.TCPListener, token string, err error) {
	if f.Token != "" {
		token, err = ReadToken(ctx, f.flag("-token-file"), f.Token)
		if err != nil {
			return nil, "", err
		}
	}
	if f.Cert != "" {
		pair, err := readPair(ctx, f.Cert, f.Key)
		if err != nil && ctx.Err() != nil {
			return nil, "", ctx.Err()
		} else if err != nil {
			return nil, "", exit.Usage(f.flag("-cert"), exit.Plain(err), "a certificate and its key, both PEM")
		}
		f.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	opened, err := net.Listen("tcp", f.Address)
	if err != nil {
		return nil, "", Failure(f.flag(""), f.Address, err)
	}
	return opened.(*net.TCPListener), token, nil
}

// readPair reads a certificate and its key.
func readPair(ctx context.Context, cert, key string) (pair tls.Certificate, err error) {
	const most = 1 << 20 // bytes
	var pems [2][]byte
	for i, name := range []string{cert, key} {
		file, err := input.OpenFile(ctx, name)
		if err != nil {
			return pair, err
		}
		pems[i], err = input.ReadAll(file, name, most)
		if err != nil {
			return pair, err
		}
	}
	return tls.X509KeyPair(pems[0], pems[1])
}

// ReadToken reads a token of 16 to 512 characters from a file that other users cannot read.
func ReadToken(ctx context.Context, flag, file string) (string, error) {
	refused := func(why string) error {
		return exit.Usage(flag, file+": "+why, "head -c 24 /dev/urandom | base64, mode 0600")
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", refused(exit.Plain(err))
	}
	const most = 1024 // bytes
	if !info.Mode().IsRegular() || info.Size() > most {
		return "", refused("not a small regular file")
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", refused("other users can read it")
	}
	in, err := input.OpenFile(ctx, file)
	if err != nil {
		return "", refused(exit.Plain(err))
	}
	text, err := input.ReadAll(in, file, most) // files of /proc report size 0
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", refused(exit.Plain(err))
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 || len(token) > 512 || strings.ContainsFunc(token, unicode.IsSpace) {
		return "", refused("not a token of 16 to 512 characters")
	}
	return token, nil
}

// namesAddress reports whether a request's Host is an IP address or localhost. Otherwise a web page could read
// responses by DNS rebinding.
func namesAddress(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || strings.EqualFold(name, "localhost")
}

// IsOwnName reports whether a request's Host is an address, this host's name or one of some hosts,
// which are patterns of path.Match. Another may be DNS rebinding. Over TLS the browser has compared
// the name with the certificate.
func IsOwnName(r *http.Request, hosts []string) bool {
	if r.TLS != nil || namesAddress(r.Host) {
		return true
	}
	name := r.Host
	if h, _, err := net.SplitHostPort(r.Host); err == nil {
		name = h
	}
	own, _ := os.Hostname()
	return own != "" && strings.EqualFold(name, own) || slices.ContainsFunc(hosts, func(pattern string) bool {
		byName, _ := path.Match(strings.ToLower(pattern), strings.ToLower(name))
		byHost, _ := path.Match(strings.ToLower(pattern), strings.ToLower(r.Host))
		return byName || byHost
	})
}

// OwnHosts returns a check of a request's Host: with TLS the certificate's names, else the address and localhost
// with the port.
func (f *ListenFlags) OwnHosts(at net.Addr) (func(*http.Request) bool, error) {
	own, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil, err
	}
	var leaf *x509.Certificate // nil: no TLS
	if f.TLS != nil {
		leaf = f.TLS.Certificates[0].Leaf
	}
	return func(r *http.Request) bool {
		name, port, err := net.SplitHostPort(r.Host)
		if err != nil {
			name = strings.Trim(r.Host, "[]")
			port = "80"
			if leaf != nil {
				port = "443"
			}
		}
		if leaf != nil && leaf.VerifyHostname(name) == nil {
			return true
		}
		ip, err := netip.ParseAddr(name)
		return port == fmt.Sprint(own.Port()) && (err == nil && ip == own.Addr() ||
			own.Addr().IsLoopback() && strings.EqualFold(name, "localhost"))
	}, nil
}
