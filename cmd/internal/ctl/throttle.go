package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/throttle"
)

// errNoThrottle is the error of Throttle for an instance without one.
var errNoThrottle = errors.New("the throttle is off: add throttle: {concurrency: 16} to the configuration (docs/throttling.md)")

// Throttle prints the load of the throttle, as a table or as JSON. With every above 0, it prints again at
// that interval until ctx ends.
func (c *Instance) Throttle(ctx context.Context, every time.Duration, out io.Writer) error {
	for {
		text, err := c.query(ctx, http.MethodGet, statusPage)
		if err != nil {
			return err
		}
		var s admin.Status
		if err := c.decode(text, &s); err != nil {
			return err
		}
		if s.Throttle == nil {
			return fmt.Errorf("ctl: %s: %w", c.Admin, errNoThrottle)
		}
		if err := c.writeLoad(out, s.Throttle); err != nil || every <= 0 {
			return err
		}
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

func (c *Instance) writeLoad(out io.Writer, s *admin.ThrottleStatus) error {
	if c.JSON {
		return json.NewEncoder(out).Encode(s) //nolint:wrapcheck // The writer is the caller's.
	}
	return throttle.WriteLoad(out, s)
}
