//go:build !linux

package waits

// Watch samples nothing on this system.
type Watch struct{}

// Open returns a Watch of nothing: only Linux shows what threads wait for.
func Open() *Watch { return &Watch{} }

// Follow does nothing.
func (*Watch) Follow(int) {}

// Keep does nothing.
func (*Watch) Keep(map[int]bool) {}

// Close does nothing.
func (*Watch) Close() {}

// Take returns nothing.
func (*Watch) Take(int) []Wait { return nil }
