package text

import "fmt"

func formatSteadyAcks(f figures) string {
	return fmt.Sprintf("the path has a standing queue (%s), and acknowledgements come at a steady rate (it varies by %s) "+
		"while that of the data which they acknowledge varies by %s: the way back seems to carry no more of them; "+
		directionHint, f.loaded(), f.share("acks_scatter_ratio"), f.share("data_scatter_ratio"))
}

func formatQueueEitherWay(f figures) string {
	return fmt.Sprintf("the path delivers a steady %s with a standing queue (%s): before a full link, or of "+
		"acknowledgements on their way back; their rate varies less (by %s) than that of the data (by %s), which may be "+
		"chance; "+directionHint, f.rate("steady_bps"), f.loaded(), f.share("acks_scatter_ratio"),
		f.share("data_scatter_ratio"))
}

// directionHint names the measurements that separate a queue of data from a queue of acknowledgements.
const directionHint = "the sender's samples do not show the queue's direction: the receiver's do (fullpipe measure " +
	"with the other host as its far end), or captures at both ends"
