package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"
)

// The parts of an OCI image layout that an image of one layer needs (image-spec 1.1).
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	imageConfig struct {
		Created time.Time `json:"created"`
		platform
		Config struct {
			User       string
			Entrypoint []string
			Labels     map[string]string
		} `json:"config"`
		RootFS struct {
			Type    string   `json:"type"`
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
		History []struct {
			Created   time.Time `json:"created"`
			CreatedBy string    `json:"created_by"`
		} `json:"history"`
	}
)

const media = "application/vnd.oci.image."

// images writes an OCI layout of each product.
func (r *release) images() error {
	for _, p := range products {
		if err := r.image(p); err != nil {
			return err
		}
	}
	return nil
}

// image writes an OCI layout with an image for each Linux architecture. The image contains only the program. It needs
// no daemon: skopeo, podman and buildah read the layout.
func (r *release) image(p product) error {
	dir := filepath.Join(r.out, p.name+"-"+r.number()+"-oci")
	top := index{SchemaVersion: 2, MediaType: media + "index.v1+json"}
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		one, err := r.imageFor(dir, p, t)
		if err != nil {
			return err
		}
		top.Manifests = append(top.Manifests, one)
	}
	if len(top.Manifests) == 0 {
		return nil
	}
	inner, err := blob(dir, top.MediaType, asJSON(top))
	if err != nil {
		return err
	}
	inner.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.number()}
	for name, text := range map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`),
		"index.json": asJSON(index{SchemaVersion: 2, MediaType: top.MediaType, Manifests: []descriptor{inner}})} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) imageFor(dir string, p product, t target) (descriptor, error) {
	var layer bytes.Buffer
	if err := r.tarGz(&layer, "usr/bin/", []entry{{p.name, r.programs[built{p.name, t}], 0o755}}); err != nil {
		return descriptor{}, err
	}
	plain, err := gzip.NewReader(bytes.NewReader(layer.Bytes()))
	if err != nil {
		return descriptor{}, err
	}
	unpacked := sha256.New()
	if _, err := io.Copy(unpacked, plain); err != nil {
		return descriptor{}, err
	}
	config := imageConfig{Created: r.at, platform: platform{t.arch, t.os}}
	config.Config.User = "65532:65532" // the usual unprivileged user of images without a shell
	config.Config.Entrypoint = []string{"/usr/bin/" + p.name}
	config.Config.Labels = map[string]string{"org.opencontainers.image.title": p.name,
		"org.opencontainers.image.description": p.summary, "org.opencontainers.image.source": homepage,
		"org.opencontainers.image.version": r.number(), "org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.licenses": "Apache-2.0"}
	config.RootFS.Type, config.RootFS.DiffIDs = "layers", []string{"sha256:" + hex.EncodeToString(unpacked.Sum(nil))}
	config.History = append(config.History, struct {
		Created   time.Time `json:"created"`
		CreatedBy string    `json:"created_by"`
	}{r.at, p.name + " " + r.tag})
	m := manifest{SchemaVersion: 2, MediaType: media + "manifest.v1+json"}
	if m.Config, err = blob(dir, media+"config.v1+json", asJSON(config)); err != nil {
		return descriptor{}, err
	}
	packed, err := blob(dir, media+"layer.v1.tar+gzip", layer.Bytes())
	if err != nil {
		return descriptor{}, err
	}
	m.Layers = []descriptor{packed}
	d, err := blob(dir, m.MediaType, asJSON(m))
	d.Platform = &platform{t.arch, t.os}
	return d, err
}

// blob stores bytes under their digest.
func blob(dir, mediaType string, text []byte) (descriptor, error) {
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:])
	return descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: len(text)},
		toFile(filepath.Join(dir, "blobs", "sha256", name), func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
}

func asJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type that cannot be encoded: a bug
	}
	return text
}
