package text

import (
	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Sentence formats an observation. An unknown code keeps the text that came with
// it.
func Sentence(e verdict.Evidence) string {
	if say, ok := sentences[e.Code]; ok {
		return say(figures(e.Values))
	}
	return e.Text
}

// EvidenceSentences fills in the sentence of each piece of evidence, which judges leave empty, and returns all.
// Documents have sentences for readers without this program.
func EvidenceSentences(all []verdict.Evidence) []verdict.Evidence {
	for i := range all {
		all[i].Text = Sentence(all[i])
	}
	return all
}

// FixSentences fills in the sentence of each fix and returns all.
func FixSentences(all []advice.Fix) []advice.Fix {
	for i := range all {
		all[i].Text = FixSentence(all[i])
	}
	return all
}
