//go:build race

package paths

func init() { raced = true }
