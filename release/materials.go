package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// component is a part of a bill of materials (CycloneDX 1.6).
type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref,omitempty"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
	// Licenses are SPDX expressions of parts under more than the application's licence.
	Licenses []map[string]string `json:"licenses,omitempty"`
}

// ebpf are the eBPF programs in the Linux programs whose licence is compatible with the GPL, as the
// kernel requires.
var ebpf = component{Type: "library", Ref: "ebpf", Name: "fullpipe-ebpf",
	Licenses: []map[string]string{{"expression": "Apache-2.0 OR MIT OR GPL-2.0-only"}}}

// materials writes a bill of materials of each program from the modules that the linker recorded in it.
func (r *release) materials() error {
	for b, program := range r.programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return fmt.Errorf("%s for %v: %w", b.product, b.target, err)
		}
		main := component{Type: "application", Ref: b.product, Name: b.product, Version: r.number(),
			PURL: "pkg:golang/" + info.Main.Path + "@" + r.tag}
		parts := []component{{Type: "platform", Ref: "go", Name: "go", Version: info.GoVersion[2:],
			PURL: "pkg:golang/stdlib@" + info.GoVersion[2:]}}
		refs := []string{"go"}
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			purl := "pkg:golang/" + dep.Path + "@" + dep.Version
			parts, refs = append(parts, component{Type: "library", Ref: purl, Name: dep.Path, Version: dep.Version,
				PURL: purl}), append(refs, purl)
		}
		if b.os == "linux" {
			programs := ebpf
			programs.Version = r.number()
			parts, refs = append(parts, programs), append(refs, programs.Ref)
		}
		bill := map[string]any{"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
			"metadata":     map[string]any{"timestamp": r.at.Format(time.RFC3339), "component": main},
			"components":   parts,
			"dependencies": []map[string]any{{"ref": b.product, "dependsOn": refs}}}
		name := fmt.Sprintf("%s-%s-%s-%s.cdx.json", b.product, r.number(), b.os, b.arch)
		if err := toFile(filepath.Join(r.out, name), func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(bill)
		}); err != nil {
			return err
		}
	}
	return nil
}
