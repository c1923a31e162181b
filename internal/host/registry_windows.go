package host

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// registryStore is the store of registry values, in the format of .reg files.
type registryStore struct{}

func (registryStore) normal(value string) string { return registryNormal(value) }

func (registryStore) read(name string) (*string, error) {
	key, value, err := registryName(name)
	if err != nil {
		return nil, err
	}
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, key, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if errors.Is(err, registry.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer k.Close()
	data := make([]byte, 1024)
	for {
		n, kind, err := k.GetValue(value, data)
		switch {
		case errors.Is(err, registry.ErrNotExist):
			return nil, nil
		case errors.Is(err, registry.ErrShortBuffer) && n <= fileLimit:
			data = make([]byte, n)
			continue
		case err != nil:
			return nil, err
		}
		text := registryText(kind, data[:n])
		return &text, nil
	}
}

// write creates a missing key. Undo leaves an empty key.
func (registryStore) write(name string, value *string) error {
	key, valueName, err := registryName(name)
	if err != nil {
		return err
	}
	if value == nil {
		return deleteRegistry(key, valueName)
	}
	kind, data, err := parseRegistry(*value)
	if err != nil {
		return err
	}
	k, _, err := registry.CreateKey(registry.LOCAL_MACHINE, key, registry.SET_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return err
	}
	defer k.Close()
	if err := setRegistry(k, valueName, kind, data); err != nil {
		return fmt.Errorf("RegSetValueEx %s: %w", valueName, err)
	}
	return nil
}

func deleteRegistry(key, value string) error {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, key, registry.SET_VALUE|registry.WOW64_64KEY)
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer k.Close()
	if err := k.DeleteValue(value); err != nil && !errors.Is(err, registry.ErrNotExist) {
		return err
	}
	return nil
}

var regSetValueEx = windows.NewLazySystemDLL("advapi32.dll").NewProc("RegSetValueExW")

// setRegistry writes a value of any type byte for byte. Package registry cannot.
func setRegistry(k registry.Key, name string, kind uint32, data []byte) error {
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	status, _, _ := regSetValueEx.Call(uintptr(k), uintptr(unsafe.Pointer(wide)), 0, uintptr(kind),
		uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)))
	if status != 0 {
		return syscall.Errno(status)
	}
	return nil
}
