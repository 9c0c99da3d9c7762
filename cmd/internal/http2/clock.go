package http2

import (
	"crypto/rand"
	"time"
)

const (
	// settingsTimeout bounds the time for the first SETTINGS frame of a client.
	settingsTimeout = 2 * time.Second
	// closeDelay is how long a client has to read the last frames before the connection is closed.
	closeDelay = time.Second
)

// clock has the bounds of time of a connection. One timer serves all: it is set for the time at which the first bound may pass, and
// moves only when that time has come. The lock of the connection guards it.
type clock struct {
	timer     *time.Timer
	began     time.Time
	idleSince time.Time // since when there is no stream
	closeAt   time.Time // when the connection is closed after GOAWAY; zero before
	pingedAt  time.Time // when the ping without a reply was sent; zero without one
	ping      [8]byte
}

func (k *clock) start(c *conn, now time.Time) {
	k.began, k.idleSince = now, now
	c.lastRead.Store(now.UnixNano())
	k.timer = time.AfterFunc(k.next(c, now).Sub(now), c.tick)
}

func (k *clock) stop() {
	if k.timer != nil {
		k.timer.Stop()
	}
}

// next returns when to look at the bounds again.
func (k *clock) next(c *conn, now time.Time) time.Time {
	config := &c.server.config
	due := now.Add(config.PingAfter)
	earlier := func(t time.Time) {
		if t.Before(due) {
			due = t
		}
	}
	if k.pingedAt.IsZero() {
		earlier(time.Unix(0, c.lastRead.Load()).Add(config.PingAfter))
	} else {
		earlier(k.pingedAt.Add(config.PingTimeout))
	}
	if !c.sawSettings {
		earlier(k.began.Add(settingsTimeout))
	}
	if !k.closeAt.IsZero() {
		earlier(k.closeAt)
	}
	if config.Idle > 0 && !c.away {
		if c.active == 0 {
			earlier(k.idleSince.Add(config.Idle))
		} else {
			earlier(now.Add(config.Idle)) // Streams may all end directly after now.
		}
	}
	return due
}

// idle notes that the last stream has ended.
func (k *clock) idle(c *conn) {
	k.idleSince = time.Now()
	if c.away {
		k.setClose(c)
	}
}

// setClose starts the time until the connection is closed, if it has no stream.
func (k *clock) setClose(c *conn) {
	if c.active > 0 || !k.closeAt.IsZero() || k.timer == nil {
		return
	}
	k.closeAt = time.Now().Add(closeDelay)
	k.timer.Reset(closeDelay)
}

// tick looks at the bounds of time.
func (c *conn) tick() {
	c.mu.Lock()
	defer c.unlock()
	if c.gone {
		return
	}
	k, config, now := &c.clock, &c.server.config, time.Now()
	switch {
	case !c.sawSettings && now.Sub(k.began) >= settingsTimeout:
		c.server.warnf("timeout waiting for SETTINGS frames from %v", c.remote)
		_ = c.Conn.Close()
	case !k.closeAt.IsZero() && !now.Before(k.closeAt):
		_ = c.Conn.Close()
	case !k.pingedAt.IsZero() && now.Sub(k.pingedAt) >= config.PingTimeout:
		c.server.warnf("timeout waiting for PING response")
		_ = c.Conn.Close()
	case k.pingedAt.IsZero() && now.Sub(time.Unix(0, c.lastRead.Load())) >= config.PingAfter:
		_, _ = rand.Read(k.ping[:])
		k.pingedAt = now
		c.queuePing(false, k.ping)
		c.kick()
	case config.Idle > 0 && c.active == 0 && now.Sub(k.idleSince) >= config.Idle:
		c.goAway()
		c.kick()
	}
	k.timer.Reset(max(k.next(c, now).Sub(now), time.Millisecond))
}
