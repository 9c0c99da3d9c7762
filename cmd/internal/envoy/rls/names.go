package rls

// Counters gives the counters of the service under the dotted names of Envoy's service.
func (s *Service) Counters(yield func(name string, value uint64)) {
	const service = "ratelimit.service."
	yield("ratelimit_server.ShouldRateLimit.total_requests", s.asked.Load())
	yield(service+"call.should_rate_limit.redis_error", s.faults.Store.Load())
	yield(service+"call.should_rate_limit.service_error", s.faults.Service.Load())
	yield(service+"global_shadow_mode", s.shadowed.Load())
	s.limits.Each(func(name string, h *Hits) {
		name = service + "rate_limit." + name
		yield(name+".total_hits", h.Total.Load())
		yield(name+".within_limit", h.Within.Load())
		yield(name+".near_limit", h.Near.Load())
		yield(name+".over_limit", h.Over.Load())
		if recalled := h.Recalled.Load(); recalled > 0 { // Its name becomes a metric of its own in Prometheus.
			yield(name+".over_limit_with_local_cache", recalled)
		}
		yield(name+".shadow_mode", h.Shadow.Load())
	})
	s.limits.eachUnknown(func(domain string, requests uint64) {
		yield(service+"rate_limit."+domain+".domain_not_found", requests)
	})
}
