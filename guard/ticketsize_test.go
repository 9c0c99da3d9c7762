package guard_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/headgate/headgate/guard"
)

// TestTicketSize checks the size of a Ticket that docs/architecture.md states.
func TestTicketSize(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(string(text)), " ")
	want := fmt.Sprintf("a Ticket of %d bytes lives until the end, with a Pass of %d bytes for each stage",
		unsafe.Sizeof(guard.Ticket{}), unsafe.Sizeof(guard.Pass{}))
	if unsafe.Sizeof(uintptr(0)) == 8 && !strings.Contains(said, want) {
		t.Errorf("docs/architecture.md does not say %q", want)
	}
}
