package pace_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/pace"
)

// TestNoPlanYet: before the first plan, log and errors say that there is no plan. After the
// first plan, a fault says that the last plan is kept.
func TestNoPlanYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		p, to := scriptedPacer(t, pace.Config{Provider: "mail", Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		const text = "no plan yet: the source has not answered"
		to.Fault(errors.New("etcd does not answer"))
		if got := logged.String(); !strings.Contains(got, text) || strings.Contains(got, "last plan") || !strings.Contains(got, "mail") {
			t.Errorf("logged %s", got)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Ready(soon); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), text) {
			t.Errorf("Ready: %v", err)
		}
		if err := p.Acquire(t.Context(), time.Second); !errors.Is(err, pace.ErrTimeout) || !strings.Contains(err.Error(), text) {
			t.Errorf("Acquire: %v", err)
		}
		to.Assign(pace.Assignment{Plan: even(t, 10, time.Second, 1, 0), Revision: 1})
		logged.Reset()
		to.Fault(errors.New("etcd is gone"))
		if got := logged.String(); !strings.Contains(got, "last plan is kept") || strings.Contains(got, text) {
			t.Errorf("after the first plan: logged %s", got)
		}
	})
}
