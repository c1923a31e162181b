// Package hostile has texts that attack pages, and finds the active content of pages, for tests.
package hostile

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Texts become active content where a page does not escape them for their place.
var Texts = []string{
	`"><script>hostile()</script>`, `'><img src=x onerror=hostile()>`, `</script><script>hostile()</script>`,
	`</style><script>hostile()</script>`, `</title><svg onload=hostile()>`, `</pre></textarea><script>hostile()</script>`,
	`" onmouseover="hostile()`, `' onfocus='hostile()' autofocus='`, ` onclick=hostile() x=`, "`-hostile()-`",
	`javascript:hostile()`, "java\nscript:hostile()", ` JAVASCRIPT:hostile()`, `data:text/html,<script>hostile()</script>`,
	`vbscript:hostile()`, `//hostile.example/x`, `"; background: url(//hostile.example/x); "`, `&quot;&gt;&lt;script&gt;`,
	`&#34; onmouseover=&#34;hostile()`, `<!--<script>`, `]]><script>hostile()</script>`,
	`<base href="//hostile.example/">`,
	`<meta http-equiv="refresh" content="0;url=//hostile.example/">`, `<iframe srcdoc="<script>hostile()</script>">`,
	`<a href="javascript:hostile()">x</a>`, `{{hostile}}`, `${hostile()}`, `\"><script>hostile()</script>`,
	`\u003cscript\u003ehostile()`, "\u2028hostile()", "+ADw-script+AD4-hostile()", `<math><mtext></form><script>hostile()`,
}

// addresses are the attributes that have an address.
var addresses = []string{"href", "xlink:href", "src", "srcset", "action", "formaction", "data", "data-from",
	"data-runs", "data-base", "poster", "background", "ping", "cite", "manifest"}

// embedding are the elements that show or load another document, or change where links lead.
var embedding = []atom.Atom{atom.Iframe, atom.Frame, atom.Object, atom.Embed, atom.Applet, atom.Base, atom.Img,
	atom.Image}

// ActiveContent returns the parts of a page that run code, load another document or lead to another host: scripts with
// their address or text, event handlers, addresses with a scheme or a host, embedded documents and redirections. JSON
// in a script element is not active.
func ActiveContent(page string) (found []string) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return []string{err.Error()}
	}
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			found = append(found, activeElement(n)...)
		}
	}
	return found
}

func activeElement(n *html.Node) (found []string) {
	attributes := map[string]string{}
	for _, a := range n.Attr {
		name := a.Key
		if a.Namespace != "" {
			name = a.Namespace + ":" + a.Key
		}
		attributes[name] = a.Val
		lower := strings.ToLower(a.Val)
		switch {
		case strings.HasPrefix(name, "on") || name == "srcdoc":
			found = append(found, fmt.Sprintf("%s %s=%q", n.Data, name, a.Val))
		case slices.Contains(addresses, name) && leadsAway(a.Val):
			found = append(found, fmt.Sprintf("%s %s=%q", n.Data, name, a.Val))
		case name == "style" && (strings.Contains(lower, "url(") || strings.Contains(lower, "hostile")):
			found = append(found, fmt.Sprintf("%s style=%q", n.Data, a.Val))
		}
	}
	switch {
	case n.DataAtom == atom.Script || n.Data == "script":
		script := textOf(n)
		if src, ok := attributes["src"]; ok {
			script = src
		}
		if attributes["type"] != "application/json" || !json.Valid([]byte(script)) {
			found = append(found, "script "+script)
		}
	case n.DataAtom == atom.Style && strings.Contains(textOf(n), "hostile"):
		found = append(found, "style "+textOf(n))
	case slices.Contains(embedding, n.DataAtom):
		found = append(found, n.Data)
	case n.DataAtom == atom.Meta && strings.EqualFold(attributes["http-equiv"], "refresh") &&
		leadsAway(afterURL(attributes["content"])):
		found = append(found, "meta refresh "+attributes["content"])
	}
	return found
}

// afterURL returns the address of a redirection.
func afterURL(content string) string {
	_, address, _ := strings.Cut(content, "url=")
	return address
}

// leadsAway reports whether a browser would leave the page's host for an address, or run it. Like a browser it ignores
// tabs, line ends, and spaces at the start.
func leadsAway(address string) bool {
	clean := strings.TrimLeft(strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(address), " ")
	clean = strings.ReplaceAll(clean, `\`, "/")
	if strings.HasPrefix(clean, "//") {
		return true
	}
	before, _, hasColon := strings.Cut(clean, ":")
	if hasColon && !strings.ContainsAny(before, "/?#") {
		return true
	}
	u, err := url.Parse(clean)
	return err == nil && u.Host != ""
}

func textOf(n *html.Node) string {
	var text strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			text.WriteString(c.Data)
		}
	}
	return text.String()
}
