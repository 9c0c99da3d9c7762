package errortype_test

import (
	"errors"
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
	if got, found := errortype.As[*fs.PathError](errors.Join(fs.ErrClosed, fmt.Errorf("%w, %w", fs.ErrExist, cause))); !found || got != cause {
		t.Errorf("got %v, %v, want the joined error", got, found)
	}
	if got, found := errortype.As[*fs.PathError](fs.ErrNotExist); found || got != nil {
		t.Errorf("got %v, %v for an error of another type", got, found)
	}
}

func TestAsAllocates(t *testing.T) {
	var none error
	var cause error = &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist}
	got := testing.AllocsPerRun(100, func() {
		if _, found := errortype.As[*fs.PathError](none); found {
			t.Error("no error has a type")
		}
		if _, found := errortype.As[*fs.PathError](fs.ErrClosed); found {
			t.Error("an error of another type is found")
		}
		if _, found := errortype.As[*fs.PathError](cause); !found {
			t.Error("the error is not found")
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}
