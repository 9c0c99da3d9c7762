package errortype_test

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/headgate/headgate/internal/errortype"
)

func TestAs(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}
	if got, found := errortype.As[*fs.PathError](fmt.Errorf("reading failed: %w", cause)); !found || got != cause {
		t.Errorf("got %v, %v, want the wrapped error", got, found)
	}
	if got, found := errortype.As[*fs.PathError](fs.ErrNotExist); found || got != nil {
		t.Errorf("got %v, %v for an error of another type", got, found)
	}
}
