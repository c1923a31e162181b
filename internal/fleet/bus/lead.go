package bus

// Lead is a hub's lead in messages. An agent follows the newest one, and returns it in its hello
// and with an order that it refuses: a hub on a copy of the database learns from it which epochs
// agents have seen.
type Lead struct {
	Epoch int64 `json:"epoch"`
	// random: copies of a database may have equal epochs
	Database string `json:"database,omitempty"`
	Proof    string `json:"proof,omitempty"` // by which hubs recognize a lead of theirs
}

// maxProof limits the texts of a lead in bytes, which agents keep.
const maxProof = 128

// May reports whether an agent that follows the lead newest takes orders of l.
func (l Lead) May(newest Lead) bool {
	return l.fits() && (l.Epoch > newest.Epoch || l.Epoch == newest.Epoch && l.Database == newest.Database)
}

func (l Lead) fits() bool { return len(l.Database)+len(l.Proof) <= maxProof }
