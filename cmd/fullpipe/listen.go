package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"unicode"
)

// listenFlags say where HTTP is answered, and to whom.
type listenFlags struct {
	address, cert, key string
	token, operator    string      // files of bearer tokens
	name               string      // of the flag; "": --listen
	tls                *tls.Config // what cert and key hold, set by open; nil: plain HTTP
}

// check says what cannot be together. What is served tells whom this host talks to: other
// hosts get it encrypted, and with the token, or not at all.
func (f *listenFlags) check() error {
	at, err := netip.ParseAddrPort(f.address)
	switch {
	case err != nil:
		return &usageError{"--listen", fmt.Sprintf("%q is not an address with a port", f.address), "--listen 127.0.0.1:9741"}
	case (f.cert == "") != (f.key == ""):
		return &usageError{"--listen-cert", "a certificate and its key are needed", "both --listen-cert and --listen-key"}
	case !at.Addr().IsLoopback() && (f.cert == "" || f.token == "" && f.operator == ""):
		return &usageError{"--listen", fmt.Sprintf("%s is open to other hosts", at),
			"--listen-cert, --listen-key and --listen-token-file with it, or 127.0.0.1"}
	}
	return nil
}

// listen is the listener, and the token that has to be brought, "" for none.
func (f *listenFlags) listen(ctx context.Context) (l *net.TCPListener, token string, err error) {
	if err := f.check(); err != nil {
		return nil, "", err
	}
	return f.open(ctx)
}

// flag is the name of one of its flags.
func (f *listenFlags) flag(end string) string { return cmp.Or(f.name, "--listen") + end }

// open listens without asking who is served.
func (f *listenFlags) open(ctx context.Context) (l *net.TCPListener, token string, err error) {
	if f.token != "" {
		if token, err = readToken(ctx, f.flag("-token-file"), f.token); err != nil {
			return nil, "", err
		}
	}
	if f.cert != "" {
		pair, err := readPair(ctx, f.cert, f.key)
		if err != nil && ctx.Err() != nil {
			return nil, "", ctx.Err()
		} else if err != nil {
			return nil, "", &usageError{f.flag("-cert"), plain(err), "a certificate and its key, both PEM"}
		}
		f.tls = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	opened, err := net.Listen("tcp", f.address)
	if err != nil {
		return nil, "", &usageError{f.flag(""), plain(err), "another port"}
	}
	return opened.(*net.TCPListener), token, nil
}

// readPair reads a certificate and its key.
func readPair(ctx context.Context, cert, key string) (pair tls.Certificate, err error) {
	const most = 1 << 20 // bytes
	var pems [2][]byte
	for i, name := range []string{cert, key} {
		file, err := openFile(ctx, name)
		if err != nil {
			return pair, err
		}
		if pems[i], err = readAll(file, name, most); err != nil {
			return pair, err
		}
	}
	return tls.X509KeyPair(pems[0], pems[1])
}

// readToken reads the token of 16 to 512 characters in a flag's file, which no other user can read.
func readToken(ctx context.Context, flag, file string) (string, error) {
	refused := func(why string) error {
		return &usageError{flag, file + ": " + why, "head -c 24 /dev/urandom | base64, mode 0600"}
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", refused(plain(err))
	}
	const most = 1024 // bytes
	if !info.Mode().IsRegular() || info.Size() > most {
		return "", refused("not a small regular file")
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", refused("other users can read it")
	}
	in, err := openFile(ctx, file)
	if err != nil {
		return "", refused(plain(err))
	}
	text, err := readAll(in, file, most) // a file of /proc has no size
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", refused(plain(err))
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
