package acceptance

import (
	"os"
	"testing"
)

// TestSizeOfBinary holds the size of what make build writes. It more than doubles when a package that finds methods by names that
// are not constants is linked, as text/template does: the linker then keeps the methods of all types.
func TestSizeOfBinary(t *testing.T) {
	const most = 32_000_000 // Bytes.
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the binary has %.1f MB", float64(info.Size())/1e6)
	if info.Size() > most {
		t.Errorf("the binary has %d bytes, more than %d: the lines with <ReflectMethod> of go build -tags grpcnotrace "+
			"-ldflags=-dumpdep ./cmd/headgate name the functions that find methods by name; go tool nm -size -sort size lists what is large",
			info.Size(), most)
	}
}
