package main

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// relativeLink matches a link of a page to a file of the tree.
var relativeLink = regexp.MustCompile(`\]\(([^()\s#:]+)(#[^()\s]*)?\)`)

// documents lists the pages of archives and packages: README, changes, security and docs/ with its pictures and schemas.
// A link to a file that no package has becomes one to the repository.
func (r *release) documents() ([]entry, error) {
	all := []entry{}
	for _, name := range []string{"README.md", "CHANGELOG.md", "SECURITY.md"} {
		all = append(all, entry{name, filepath.Join(r.source, name), 0o644})
	}
	docs, err := r.under(filepath.Join(r.source, "docs"), "docs/")
	if err != nil {
		return nil, err
	}
	for _, doc := range docs {
		if !strings.HasSuffix(doc.name, ".go") {
			all = append(all, doc)
		}
	}
	for i, doc := range all {
		if !strings.HasSuffix(doc.name, ".md") {
			continue
		}
		text, err := os.ReadFile(doc.from)
		if err != nil {
			return nil, err
		}
		linked := r.linked(string(text), doc.name, all)
		all[i].from = filepath.Join(r.work, "documents", doc.name)
		err = toFile(all[i].from, func(w io.Writer) error {
			_, err := io.WriteString(w, linked)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// linked returns a page with the links that stay inside the package, and all others to the repository.
func (r *release) linked(text, name string, all []entry) string {
	return relativeLink.ReplaceAllStringFunc(text, func(link string) string {
		m := relativeLink.FindStringSubmatch(link)
		target := path.Join(path.Dir(name), m[1])
		if slices.ContainsFunc(all, func(e entry) bool { return e.name == target || strings.HasPrefix(e.name, target+"/") }) {
			return link
		}
		return "](" + homepage + "/blob/" + r.commit + "/" + target + m[2] + ")"
	})
}
