package present

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// HeaderOf returns the header of a document of another kind than the command's name.
func HeaderOf(cmd *cobra.Command, kind string) record.Header {
	h := Header(cmd)
	h.Schema = "fullpipe/" + kind + "/v1"
	return h
}

// Started is when this process began its work; the contract dates every object by it.
var Started = time.Now().UTC().Round(time.Millisecond)

// Header returns the header of a command's document.
func Header(cmd *cobra.Command) record.Header {
	return record.Header{Schema: "fullpipe/" + cmd.Name() + "/v1", Version: build.Version(), StartedAt: Started}
}

// JSON writes a document, or another object of the contract, as its JSON.
func JSON(w io.Writer, doc any) error {
	encoded, err := record.EncodeAny(doc)
	if err != nil {
		return err
	}
	_, err = render.NewWriter(w).Write(encoded)
	return err
}
