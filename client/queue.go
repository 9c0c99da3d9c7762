package client

// setStream makes a stream the one that takes new calls.
func (k *Client) setStream(s *stream) {
	k.setDown(false, nil)
	k.mu.Lock()
	k.stream = s
	k.mu.Unlock()
	s.wake()
}

// dropStream takes no new calls for a stream. If it broke, only a part of the calls that waited for it may
// go to another one: when a server is overloaded, repeated calls would make it worse.
func (k *Client) dropStream(s *stream) {
	k.mu.Lock()
	k.stream = nil
	if s.ending.Load() {
		k.mu.Unlock()
		return
	}
	kept := k.queue[:0]
	var failed []*call
	for _, c := range k.queue {
		if k.retries < 1 {
			failed = append(failed, c)
			continue
		}
		k.retries--
		k.stats.retried.Add(1)
		kept = append(kept, c)
	}
	clear(k.queue[len(kept):])
	k.queue = kept
	k.mu.Unlock()
	failAll(failed)
}

// earn saves a part of answered calls for retries.
func (k *Client) earn(calls int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.retries = min(k.retries+retryShare*float64(calls), mostRetries)
}

// setDown notes whether a server can be reached. While none can, the fallback decides at once. err says why none
// can, if it is known.
func (k *Client) setDown(down bool, err error) {
	k.mu.Lock()
	changed := k.down != down
	k.down = down
	k.mu.Unlock()
	if down {
		k.failQueue()
	}
	if !changed || k.life.Err() != nil {
		return
	}
	if down {
		k.config.Log.Warn("no headgate server answers: the fallback decides until one does", "servers", k.config.Servers,
			"fallback", k.config.Fallback.String(), "error", err)
		return
	}
	k.config.Log.Info("a headgate server answers again")
}

// failQueue ends all calls that wait to be sent.
func (k *Client) failQueue() {
	k.mu.Lock()
	waiting := k.queue
	k.queue = nil
	k.mu.Unlock()
	failAll(waiting)
}
