// Package listener holds what servers share: the flags of an address, who is answered, pages and metrics.
package listener

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"unicode"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
)

// ListenFlags say where HTTP is answered, and to whom.
type ListenFlags struct {
	Address, Cert, Key string
	Token, Operator    string      // files of bearer tokens
	Name               string      // of the flag; "": --listen
	TLS                *tls.Config // what cert and key hold, set by open; nil: plain HTTP
}

// Check returns the error of flags that conflict. Other hosts get an answer only over TLS and with the token, because
// it names the hosts that this host talks to.
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

// Listen is the listener, and the token that has to be brought, "" for none.
func (f *ListenFlags) Listen(ctx context.Context) (l *net.TCPListener, token string, err error) {
	if err := f.Check(); err != nil {
		return nil, "", err
	}
	return f.Open(ctx)
}

// flag is the name of one of its flags.
func (f *ListenFlags) flag(end string) string { return cmp.Or(f.Name, "--listen") + end }

// Open listens without asking who is served.
func (f *ListenFlags) Open(ctx context.Context) (l *net.TCPListener, token string, err error) {
	if f.Token != "" {
		if token, err = ReadToken(ctx, f.flag("-token-file"), f.Token); err != nil {
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
		return nil, "", exit.Usage(f.flag(""), exit.Plain(err), "another port")
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
		if pems[i], err = input.ReadAll(file, name, most); err != nil {
			return pair, err
		}
	}
	return tls.X509KeyPair(pems[0], pems[1])
}

// ReadToken reads the token of 16 to 512 characters in a flag's file, which no other user can read.
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
	text, err := input.ReadAll(in, file, most) // a file of /proc has no size
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

// byAddress says whether a request's Host is an address or localhost. A web page whose own
// name was made to lead to this host (DNS rebinding) could read what it answers otherwise.
func byAddress(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil || strings.EqualFold(name, "localhost")
}

// Ours says which hosts a request may name: over TLS those of the certificate, else the
// address itself and localhost, with its port.
func (f *ListenFlags) Ours(at net.Addr) (func(host string) bool, error) {
	own, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil, err
	}
	var leaf *x509.Certificate // nil: no TLS
	if f.TLS != nil {
		leaf = f.TLS.Certificates[0].Leaf
	}
	return func(host string) bool {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name = strings.Trim(host, "[]")
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
