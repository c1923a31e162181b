package text

import (
	"reflect"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Sentence says an observation in words. A code that this program does not know keeps the
// text that came with it.
func Sentence(e verdict.Evidence) string {
	if say, ok := sentences[e.Code]; ok {
		return say(figures(e.Values))
	}
	return e.Text
}

// AddSentences fills in the text of every piece of evidence in a document, which judges
// leave empty: documents carry it for those who read them without this program.
func AddSentences(doc any) { addSentences(reflect.ValueOf(doc)) }

func addSentences(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			addSentences(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if e, ok := v.Interface().([]verdict.Evidence); ok {
			for i := range e {
				e[i].Text = Sentence(e[i])
			}
			return
		}
		for i := range v.Len() {
			addSentences(v.Index(i))
		}
	case reflect.Struct:
		if v.CanAddr() {
			addOwnSentences(v.Addr().Interface())
		}
		for i := range v.NumField() {
			if !bears(v.Field(i).Type()) {
				continue
			}
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				addSentences(v.Field(i))
			}
		}
	}
}

// bears says that values of a type may hold sentences; nearly all fields are figures and
// names, and do not.
func bears(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return bears(t.Elem())
	}
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Interface
}

// addOwnSentences fills in the texts of documents' parts that are no evidence.
func addOwnSentences(part any) {
	switch p := part.(type) {
	case *record.ComparedDirection:
		p.Text = differenceText(p)
	case *record.Fix:
		p.Text = FixSentence(*p)
	case *record.RecheckEvent:
		p.Text = RecheckSentence(p)
	case *record.Explanation:
		p.Text = explanationText(p)
	case *record.CapturedDirection:
		if p.Prediction != nil {
			p.Prediction.Fix = CapturedDirectionRemedy(p)
		}
	}
}
