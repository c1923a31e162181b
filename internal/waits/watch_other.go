//go:build !linux

package waits

// Watch samples nothing on this system.
type Watch struct{}

// Start begins nothing: only Linux shows what threads wait for.
func Start(int) *Watch { return &Watch{} }

// Close does nothing.
func (*Watch) Close() {}

// Waits returns nothing.
func (*Watch) Waits() []Wait { return nil }
