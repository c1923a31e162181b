//go:build linux

package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/ndt7"
)

// head returns the head of a request, with optional further lines, without the empty line that ends it.
func head(method, target string, more ...string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + strings.Join(append(more, ""), "\r\n")
}

// upgrade requests a WebSocket with M-Lab's protocol.
func upgrade(target string) string {
	return head("GET", target, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
		"Sec-WebSocket-Key: DOdm+5/Cm3WwvhfcAlhJoQ==", "Sec-WebSocket-Protocol: "+ndt7.Protocol) + "\r\n"
}

// masked returns a client's frame. Its payload may be shorter than the length that it claims.
func masked(first byte, claimed uint64, payload []byte) []byte {
	b := wsFrame(first, claimed, nil)
	b[1] |= 0x80
	return append(append(b, 0, 0, 0, 0), payload...) // a mask of zeros leaves it as it is
}

// visitors are ways of a web client to be slow, half open, flooding, lying or senseless. Each keeps its connection
// open until over closes, unless the server ends it first.
func visitors() (all []farEnd) {
	noise := make([]byte, 1<<16)
	rand.Read(noise)
	add := func(name string, act func(*net.TCPConn, <-chan struct{})) {
		all = append(all, farEnd{name: "visitor-" + name, kind: "visitor", stranger: act})
	}
	lines := func(n int, line string) string { return strings.Repeat(line, n) }
	frames := func(n int, first byte, payload string) string {
		return lines(n, string(masked(first, uint64(len(payload)), []byte(payload))))
	}
	deep := []byte(lines(1300, `{"TCPInfo":`))
	uploads := upgrade(ndt7.UploadPath)
	for name, text := range map[string]string{
		"silent":       "",
		"request-cut":  "GET /test HT",
		"head-cut":     head("GET", "/test"),
		"body-cut":     head("POST", "/test/begin", "Content-Length: 1000") + "\r\n{",
		"length-huge":  head("POST", "/test/begin", "Content-Length: 99999999999999999999") + "\r\n",
		"length-twice": head("POST", "/test/begin", "Content-Length: 5", "Content-Length: 70") + "\r\nhello",
		"length-and-chunks": head("POST", "/test/begin", "Content-Length: 4", "Transfer-Encoding: chunked") +
			"\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
		"chunk-negative": head("POST", "/test/begin", "Transfer-Encoding: chunked") + "\r\n-1\r\nx",
		"host-none":      "GET / HTTP/1.1\r\n\r\n",
		"host-escapes":   "GET / HTTP/1.1\r\nHost: \x1b[2J\u202e\r\n\r\n",
		"host-other":     "GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n",
		"path-up": head("GET", "/static/../../../../etc/passwd") + "\r\n" +
			head("GET", "/static/%2e%2e/%2e%2e/etc/passwd") + "\r\n",
		"path-escapes":   head("GET", "/\x1b[2J%1b%0aFORGED\u202e") + "\r\n",
		"path-absolute":  head("GET", "http://169.254.169.254/x") + "\r\n",
		"agent-escapes":  head("GET", "/test", "User-Agent: \x1b[2J\u202e", "Referer: \x1b[2J", "Cookie: a=\x1b[2J") + "\r\n",
		"method-unknown": head("\x1b[2J", "/test") + "\r\n" + head("TRACE", "/test") + "\r\n",
		"connect":        head("CONNECT", "169.254.169.254:80") + "\r\n",
		"origin-other": head("POST", "/test/begin", "Origin: https://attacker.example", "Sec-Fetch-Site: cross-site",
			"Content-Length: 2") + "\r\n{}",
		"garbage":   string(noise[:4096]),
		"tls":       "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"http2":     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"pipelined": lines(2000, head("GET", "/static/test.js")+"\r\n"),
		"begins":    lines(1000, head("POST", "/test/begin", "Content-Length: 2")+"\r\n{}"),
		"tokens-guessed": lines(300, head("GET", "/open?token=guess")+"\r\n"+
			head("GET", "/api/v1/paths", "Authorization: Bearer x")+"\r\n"),
		"sessions-guessed":  lines(300, head("POST", "/s/guess/retest", "Cookie: fullpipe=x", "Content-Length: 0")+"\r\n"),
		"upgrade-without":   head("GET", ndt7.UploadPath, "Connection: Upgrade", "Upgrade: websocket") + "\r\n",
		"upgrade-of-others": strings.ReplaceAll(upgrade(ndt7.UploadPath), ndt7.Protocol, "\x1b[2J"),
		"upgrades":          lines(50, upgrade("/test/echo?run=guess")),
		"query-escapes":     upgrade(ndt7.DownloadPath + "?client_name=%1b%5b2J%0aFORGED&run=%1b&phase=%1b&fullpipe_ms=%1b"),
		"query-huge":        upgrade(ndt7.UploadPath + "?x=" + strings.Repeat("y", 15000)),
		"download-unread":   upgrade(ndt7.DownloadPath),
		"download-many":     lines(8, upgrade(ndt7.DownloadPath+"?fullpipe_ms=500")),
		"upload-nothing":    upgrade(ndt7.UploadPath),
		"upload-frame-cut":  upgrade(ndt7.UploadPath) + string(masked(wsEnd|wsBinary, 1<<62, noise)),
		"upload-unmasked":   upgrade(ndt7.UploadPath) + string(wsFrame(wsEnd|wsBinary, 4, []byte("abcd"))),
		"upload-reserved":   upgrade(ndt7.UploadPath) + string(masked(wsEnd|0x70|wsBinary, 1, []byte("x"))),
		"upload-deep":       upgrade(ndt7.UploadPath) + string(masked(wsEnd|wsText, 13000, deep[:13000])),
	} {
		add(name, says([]byte(text)))
	}
	add("resets", func(c *net.TCPConn, _ <-chan struct{}) { io.WriteString(c, head("GET", "/test")); c.SetLinger(0) })
	add("half-open", func(c *net.TCPConn, over <-chan struct{}) {
		io.WriteString(c, head("GET", "/test"))
		c.CloseWrite()
		<-over
	})
	add("slow-head", drips([]byte(head("GET", "/test", strings.Repeat("X-A: y\r\n", 500)))))
	add("slow-body", drips([]byte(head("POST", "/test/begin", "Content-Length: 5000")+"\r\n"+strings.Repeat("{", 5000))))
	add("slow-frames", drips(append([]byte(upgrade(ndt7.UploadPath)), masked(wsEnd|wsBinary, 1<<10, noise[:1<<10])...)))
	for name, both := range map[string][2]string{
		"head-endless": {head("GET", "/test"), lines(100, "X-A: y\r\n")},
		"line-endless": {"GET /", lines(1<<14, "y")},
		"body-endless": {head("POST", "/test/begin", "Content-Length: 1099511627776") + "\r\n", string(noise)},
		"chunks-endless": {head("POST", "/test/begin", "Transfer-Encoding: chunked") + "\r\n",
			lines(1000, "1;x=y\r\nz\r\n")},
		"upload-endless":   {uploads, frames(1, wsEnd|wsBinary, string(noise))},
		"message-endless":  {uploads + frames(1, wsBinary, "x"), frames(1, wsMore, string(noise))},
		"pieces-empty":     {uploads + frames(1, wsBinary, ""), frames(1000, wsMore, "")},
		"texts-endless":    {uploads, frames(1000, wsEnd|wsText, "{}")},
		"text-endless":     {uploads + frames(1, wsText, "["), frames(1, wsMore, string(noise))},
		"pings-endless":    {upgrade(ndt7.DownloadPath), frames(1000, wsEnd|wsPing, "ping")},
		"echoes-endless":   {upgrade("/test/echo?run=RUN"), frames(1000, wsEnd|wsText, "echo")},
		"download-uploads": {upgrade(ndt7.DownloadPath), frames(1, wsEnd|wsBinary, string(noise))},
	} {
		flooding := floods([]byte(both[0]), []byte(both[1]))
		if name == "echoes-endless" {
			add(name, func(c *net.TCPConn, over <-chan struct{}) {
				run := begins(c)
				floods([]byte(strings.ReplaceAll(both[0], "RUN", run)), []byte(both[1]))(c, over)
			})
			continue
		}
		add(name, flooding)
	}
	for name, body := range map[string]string{
		"result-escapes": `{"phases":[{"name":E,"connections":1}],"idle_rtt_ms":[1]}`,
		"result-absurd": `{"phases":[{"name":"down1","connections":9,"bytes":9223372036854775807,"first_ms":-1e300,
"last_ms":1e300,"idle_ratio":-1e300,"rtt_ms":[1,1e4]}],"idle_rtt_ms":[0]}`,
		"result-endless": `{"phases":[` + lines(5000, `{"name":"up1"},`),
		"result-deep":    lines(30000, `[`),
		"result-of-none": `{"phases":[],"idle_rtt_ms":[]}`,
	} {
		add(name, func(c *net.TCPConn, over <-chan struct{}) {
			text := strings.ReplaceAll(body, "E", jsonText(attack))
			length := fmt.Sprint("Content-Length: ", len(text))
			io.WriteString(c, head("POST", "/test/"+begins(c)+"/result", length)+"\r\n"+text)
			<-over
		})
	}
	return sorted(all)
}

// begins starts a browser's test and returns its name, or "" if the server refuses.
func begins(c *net.TCPConn) string {
	io.WriteString(c, head("POST", "/test/begin", "Content-Length: 2")+"\r\n{}")
	c.SetReadDeadline(time.Now().Add(time.Second))
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	var begun struct{ ID string }
	json.NewDecoder(io.LimitReader(answer.Body, 1<<10)).Decode(&begun) // without a name it is refused later
	return begun.ID
}
