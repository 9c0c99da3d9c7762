package app

import (
	"context"

	"github.com/headgate/headgate/config"
)

// follow reloads when a file of the configuration changes, and when the operator
// asks for it, until ctx ends. The channel is closed when all of it has ended.
func (i *Instance) follow(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if i.options.Path == "" {
			return
		}
		err := config.Watch(ctx, i.options.Path, i.config.Load(), func() []string {
			_ = i.Reload() // It has told the log.
			return i.config.Load().Files()
		})
		if err != nil {
			i.options.Log.Error("changes of the configuration go unnoticed", "error", err)
		}
	}()
	go func() {
		defer close(ended)
		for {
			select {
			case <-i.options.Hangup:
				_ = i.Reload()
			case <-ctx.Done():
				<-watched
				return
			}
		}
	}()
	return ended
}
