package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// request is a request, or without ID a notification. A response of the client has no method.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is an error of JSON-RPC. Its message never quotes the client.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Codes of JSON-RPC; busy is the server's own.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeBusy           = -32000
)

// validID reports whether an id is a short string or a number.
func validID(id json.RawMessage) bool {
	return len(id) > 0 && len(id) <= maxID && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// receive handles a line.
func (c *session) receive(l line) {
	null := json.RawMessage("null")
	if l.tooLong {
		c.send(response{ID: null, Error: &rpcError{codeInvalidRequest, fmt.Sprintf("longer than %d bytes", maxMessage)}})
		return
	}
	if len(bytes.TrimSpace(l.text)) == 0 {
		return
	}
	var r request
	if !json.Valid(l.text) {
		c.send(response{ID: null, Error: &rpcError{codeParse, "not JSON: one message a line is expected"}})
		return
	}
	if err := json.Unmarshal(l.text, &r); err != nil || r.Version != "2.0" {
		c.send(response{ID: null, Error: &rpcError{codeInvalidRequest,
			"not a JSON-RPC 2.0 message; batches are not supported"}})
		return
	}
	switch {
	case r.Method == "": // a response; the server asks nothing
	case len(r.ID) == 0:
		c.notified(r)
	case !validID(r.ID):
		c.send(response{ID: null, Error: &rpcError{codeInvalidRequest, "the id must be a short string or a number"}})
	case r.Method == "tools/call":
		c.call(r)
	default:
		result, fault := c.respond(r)
		c.send(response{ID: r.ID, Result: result, Error: fault})
	}
}

// notified handles a notification. Unknown ones are ignored.
func (c *session) notified(r request) {
	if r.Method != "notifications/cancelled" {
		return
	}
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(r.Params, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.running[string(p.RequestID)]; cancel != nil {
		cancel()
	}
}

// respond returns the result of any request but a call.
func (c *session) respond(r request) (any, *rpcError) {
	switch {
	case r.Method == "ping":
		return struct{}{}, nil
	case r.Method == "initialize":
		return c.initialize(r.Params)
	case !c.initialized:
		return nil, &rpcError{codeInvalidRequest, "initialize comes first"}
	case r.Method == "tools/list":
		return c.list(), nil
	}
	return nil, &rpcError{codeNoMethod, "no such method: initialize, ping, tools/list and tools/call are known"}
}

func (c *session) initialize(params json.RawMessage) (any, *rpcError) {
	var p struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(params, &p) != nil || p.ProtocolVersion == "" {
		return nil, &rpcError{codeInvalidParams, "protocolVersion is missing"}
	}
	c.initialized = true
	version := versions[0]
	if slices.Contains(versions, p.ProtocolVersion) {
		version = p.ProtocolVersion
	}
	return map[string]any{
		"protocolVersion": version,
		"capabilities":    map[string]any{"tools": struct{}{}},
		"serverInfo":      map[string]string{"name": c.server.Name, "version": c.server.Version},
		"instructions":    c.server.Instructions,
	}, nil
}

// list returns the tools.
func (c *session) list() any {
	all := []any{}
	for _, t := range c.server.Tools {
		one := map[string]any{"name": t.Name, "title": t.Title, "description": t.Description, "inputSchema": t.Input,
			"annotations": map[string]any{"title": t.Title, "readOnlyHint": true, "destructiveHint": false,
				"openWorldHint": t.OpenWorld}}
		if t.Output != nil {
			one["outputSchema"] = t.Output
		}
		all = append(all, one)
	}
	return map[string]any{"tools": all}
}

// call begins a call. Its response follows unless it is cancelled.
func (c *session) call(r request) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	fault := &rpcError{codeInvalidParams, "no such tool: tools/list lists them"}
	wrong := json.Unmarshal(r.Params, &p)
	i := slices.IndexFunc(c.server.Tools, func(t Tool) bool { return t.Name == p.Name })
	switch {
	case !c.initialized:
		fault = &rpcError{codeInvalidRequest, "initialize comes first"}
	case wrong != nil:
		fault = &rpcError{codeInvalidParams, "the parameters are not those of a call"}
	case i >= 0:
		fault = c.begin(string(r.ID), func(ctx context.Context) {
			result, err := c.server.Tools[i].Call(ctx, p.Arguments)
			switch {
			case ctx.Err() != nil: // cancelled by the client, or at the end
			case err != nil:
				c.send(response{ID: r.ID, Error: &rpcError{codeInternal, "the tool could not run"}})
			default:
				c.send(response{ID: r.ID, Result: result.message()})
			}
		})
	}
	if fault != nil {
		c.send(response{ID: r.ID, Error: fault})
	}
}

// begin runs a call, unless its id is in use or too many calls are running.
func (c *session) begin(id string, run func(context.Context)) *rpcError {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.running[id] != nil:
		return &rpcError{codeInvalidRequest, "a call with this id is running"}
	case len(c.running) >= maxCalls:
		return &rpcError{codeBusy, fmt.Sprintf("%d calls are running; try again when one has ended", maxCalls)}
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.running[id] = cancel
	c.calls.Go(func() {
		run(ctx)
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, id)
	})
	return nil
}

// message returns a result as the protocol has it.
func (r Result) message() any {
	content := []any{}
	for _, part := range r.Text {
		content = append(content, map[string]string{"type": "text", "text": part})
	}
	m := map[string]any{"content": content, "isError": r.Failed}
	if r.Structured != nil {
		m["structuredContent"] = r.Structured
	}
	return m
}
