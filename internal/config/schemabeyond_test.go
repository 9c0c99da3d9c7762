package config

// beyondSchemaNames lists the malformed files that the schema accepts, grouped by the reason.
var beyondSchemaNames = map[string]string{
	"prices: the rules that use them are elsewhere": `prices-alone prices-missing`,
	"amounts: a pattern sees the form of 2s, 1MiB or 80%, and not how much it is": `
		ban-after-zero ban-for-too-long ban-for-too-short front-body-idle-timeout-zero front-max-header-too-little
		front-max-header-too-much front-upstream-h2c-port-zero identity-jwt-leeway-too-long
		identity-trusted-proxies-prefix-too-long limit-burst-takes-centuries limit-count-too-great
		limit-period-too-long limit-period-zero max-memory-too-little max-memory-too-much
		proxy-listen-port-too-great proxy-timeout-too-long proxy-upstream-port-too-great shutdown-timeout-too-long
		soft-hundred-percent soft-zero-percent store-timeout-too-long store-timeout-zero redis-dial-timeout-zero memcached-refresh-too-short
		breaker-probe-zero deny-cache-too-long local-share-too-great local-share-zero prefetch-hold-too-long
		prefetch-hold-too-short fair-share-cycle-too-long fair-share-cycle-too-short fair-share-cycle-zero
		fair-share-reservation-too-great count-status-out-of-range in-flight-ttl-short
		server-http-body-too-long server-keepalive-too-short server-call-memory-too-small
		server-traffic-memory-too-small retry-after-max-too-long`,
	"overrides: a schema does not compare a value with match, and not two values": `override-never-applies`,
	"the server: addresses that must differ, and fields that need each other": `
		server-statsd-addresses server-statsd-twice server-client-auth-without-ca server-client-name-without-ca server-unhealthy-without-a-store
		server-unhealthy-without-memcached server-listeners-on-one-port server-listens-on-the-admin-port server-tls-without-key admin-tls-empty-section
		admin-tls-key-without-cert admin-peers-ca-of-http admin-peers-token-alone admin-peers-twice admin-peers-wildcard
		server-without-listener server-auth-mtls-without-ca server-traffic-memory-below-calls
		server-traffic-memory-below-leases`,
	"callers: what listeners need, and what two callers or two entries must not share": `
		admin-auth-without-callers server-auth-without-callers server-auth-twice server-caller-scope-twice
		server-caller-rule-misspelled server-callers-with-one-name server-callers-with-one-token
		server-callers-with-one-certificate server-caller-without-proof server-limit-of-nothing`,
	"the throttle: fields that need or exclude each other, and names that the throttle uses": `
		throttle-deadlines throttle-header-of-a-rule throttle-max-deadline-below-the-default throttle-missing-limit throttle-rule-of-this-name
		throttle-search-below throttle-search-bounds throttle-search-enforce throttle-search-of-cpu
		throttle-tenant-without-keys throttle-two-limits`,
	"the form of the file: YAML's own means, spellings of one number, and names that are one to us alone": `
		burst-thousands fair-share-anonymous-boolean fair-share-capacity-thousands identity-user-ip-header-twice match-header-twice version-with-point yaml-merge-key yaml-tag`,
	"patterns: a text that looks like one, and names that are one without the mark of a literal": `
		path-braces match-method-unknown match-method-negated match-method-several match-path-variable-optional match-path-parameter match-host-rest-within match-path-rest-within match-path-expression-class
		match-query-not match-header-expression-of-a-text match-header-name-wildcard match-descriptor-choice match-domain-expression
		key-header-name-wildcard fair-share-exempt-method-unknown fair-share-weights-name-wildcard domains-value-template
		domains-value-template-with-wildcard domains-name-twice`,
	"keys: parts that the proxy cannot give": `proxy-cannot-give-keys`,
	"cors: origins that no browser sends, and fields that exclude each other": `
		cors-any-and-others cors-any-with-credentials cors-origin-null cors-origin-twice cors-origin-with-path cors-origin-with-wildcard
		cors-without-origins`,
	"bodies of refusals: what they are for their type, and fields that need or exclude each other": `
		on-exceed-body-and-file on-exceed-body-file-of-a-source on-exceed-body-not-json on-exceed-body-of-a-style
		on-exceed-body-without-type on-exceed-header-of-framing on-exceed-header-retry-after on-exceed-placeholder-in-script
		on-exceed-placeholder-misspelled on-exceed-type-with-charset on-exceed-type-without-body`,
	"statsd: a field that needs another one": `server-statsd-rewrites-of-statsd`,
	"quotas: what rules, plans and customers are for each other, and names that are one to us alone": `
		customer-no-address customer-note-of-two-lines customer-plan-unknown customer-quota-not-counted
		customer-raise-another-algorithm customer-spending-above-hard customer-spending-below-the-limit
		customer-spending-of-reject customer-spending-of-several customer-under-two-names customers-without-quota plan-after-without-hard
		plan-algorithms-of-one-period plan-hard-below-the-limit plan-hard-of-a-bucket plan-hard-of-reject
		plan-header-of-the-key plan-name plan-period-twice plan-periods-with-one-number plan-soft-of-zero plan-without-quotas
		quota-cost-above-a-plan quota-default-plan-missing quota-default-plan-unknown quota-key-all
		quota-key-of-two-parts quota-lacking-in-a-plan quota-not-counted quota-of-no-plan quota-rule-of-this-name
		quota-unknown quota-with-degrade quota-with-delay quota-with-limits quota-with-overrides`,
	"metering: fields that environment variables may set, so that the file may lack them": `
		metering-events-without-url metering-lines-without-folder metering-too-little metering-without-journal metering-without-output`,
	"domains: the tree as a whole, and fields that need or exclude each other": `
		domains-algorithm-of-unlimited domains-empty-name domains-fallback-local-of-memory domains-key-twice
		domains-limit-never-reached domains-limits-beside-unlimited domains-limits-twice-the-period
		domains-log-beyond-memory domains-replaces-empty
		domains-replaces-itself domains-share-threshold-without-wildcard domains-too-deep domains-value-twice`,
	"the calendar: what its settings and limits mean for each other, and the names of time zones": `
		calendar-day-never-reached calendar-month-of-a-ban calendar-month-of-a-token-bucket calendar-month-of-ban-after
		calendar-month-twice calendar-month-with-prefetch calendar-settings-without-a-calendar quota-with-calendar-fields
		calendar-week-starts-without-a-week calendar-zone-local calendar-zone-unknown`,
	"the source: fields that need or exclude each other": `
		source-etcd-two-schemes source-etcd-user-alone source-http-interval-too-short source-http-tls-unused source-of-none source-of-two
		source-postgres-port source-postgres-without-hosts`,
	"leases: amounts, fields that need or exclude each other, and names that are one to us alone": `
		lease-capacity-of-slots-with-a-period lease-capacity-of-the-calendar lease-capacity-too-great lease-capacity-without-a-period
		lease-election-length-too-short lease-election-without-group lease-election-servers-without-rules
		lease-rule-in-a-group-without-servers lease-rule-in-a-group-without-a-token lease-election-on-a-socket
		lease-election-of-a-client lease-election-without-servers-with-a-source lease-rule-of-the-proxy-of-a-root
		lease-floors-above-all lease-holder-band-twice lease-holder-unknown lease-holder-without-the-scope lease-holders-without-auth lease-length-too-short
		lease-limits-address lease-limits-user lease-limits-of-a-leaf lease-limits-without-etcd
		lease-match-twice lease-min-capacity-too-great lease-refresh-too-long lease-resources-of-a-leaf lease-server-twice
		lease-server-without-host lease-server-without-port lease-token-of-a-root lease-without-resources lease-without-server
		lease-length-of-a-client lease-max-leases-without-rules lease-rule-brace lease-rule-fallback-local
		lease-rule-part-beyond-the-key lease-rule-part-of-all lease-rule-with-delay lease-rule-with-hard lease-rule-with-limits
		lease-rule-with-overrides lease-rule-with-quota lease-rule-with-window lease-rule-without-section
		lease-rule-without-a-resource-of-the-root lease-rule-without-a-resource-of-the-group`,
	"between fields: what one field means for another, in one section or across the file": `
		cors-of-a-server count-with-ban count-with-delay count-with-leaky-bucket count-without-limits
		in-flight-alone-with-degrade in-flight-alone-with-delay in-flight-alone-with-fields-of-limits
		in-flight-alone-with-prefetch in-flight-and-overrides-with-burst in-flight-on-memcached in-flight-ttl-alone
		rule-name-of-in-flight settle-with-prefetch
		admin-listen-is-the-proxy admin-listen-twice ban-after-below-an-override ban-after-below-the-limit
		ban-after-below-the-limit-in-longer-time ban-of-a-limit-of-zero ban-of-in-flight-alone
		local-share-of-a-ban-of-in-flight-too-little local-share-of-in-flight-too-little burst-of-a-limit-of-zero
		cost-above-an-override cost-above-burst front-log-access-file-beside-off
		front-log-access-file-without-access log-identity-combined log-identity-in-both log-identity-keys-off
		log-identity-path log-identity-plain-claim log-identity-plain-cookie log-identity-plain-credentials log-identity-too-many
		log-identity-twice log-identity-without-access log-identity-without-keys front-request-id-of-a-rule front-request-id-of-the-throttle
		front-tls-cert-without-key
		front-tls-client-auth-alone front-tls-client-auth-without-authorities front-tls-client-ca-alone
		front-tls-empty-section front-tls-key-without-cert front-upstream-tls-cert-without-key
		front-upstream-tls-key-without-cert front-upstream-tls-of-a-socket front-upstream-tls-of-http
		front-upstream-unix-is-itself identity-jwt-without-keys identity-user-ip-headers-without-proxies
		key-jwt-without-keys key-region-without-database key-user-ip-without-headers key-xff-ip-without-proxies
		limit-log-beyond-memory limit-log-too-long limit-never-reached limit-never-reached-in-a-log rule-left-out
		limit-period-twice max-cost-above-limit max-cost-above-override max-cost-with-number max-cost-without-header
		on-exceed-degrade-header-of-another-rule on-exceed-degrade-header-of-the-key on-exceed-delay-too-far-ahead
		on-exceed-delay-with-window on-exceed-hard-below-a-window-begun on-exceed-hard-below-an-override
		on-exceed-hard-below-the-burst on-exceed-hard-below-the-limit on-exceed-hard-below-the-rate
		on-exceed-hard-is-the-limit on-exceed-hard-log-too-long on-exceed-redirect-with-status-of-refusal
		on-exceed-status-redirect-of-reject overrides-beyond-memory overrides-burst-with-window
		overrides-delay-too-far-ahead overrides-no-address overrides-no-region overrides-of-all
		overrides-windows-covered proxy-upstream-empty-section proxy-upstream-is-itself proxy-upstream-missing
		log-keys-secret-file-beside-plain
		rule-name-of-a-ban rule-name-of-a-hard-limit rule-name-of-a-limit rule-name-of-an-override rule-name-twice
		group-in-the-wrong-order rule-never-decides rule-never-decides-before-its-cover rule-never-decides-twice-the-same
		rule-never-decides-under-a-ban soft-of-a-limit-of-zero
		breaker-longest-below-the-probe breaker-of-memory breaker-probe-above-the-longest deny-cache-of-memory
		fallback-local-of-memory local-share-beyond-memory local-share-missing local-share-missing-of-a-rule
		local-share-of-a-ban-too-little local-share-of-a-burst-too-little local-share-of-a-limit-too-little
		local-share-of-an-override-too-little local-share-of-memory local-share-without-local
		memcached-counters-of-memory memcached-counters-of-redis prefetch-mapping-of-memory prefetch-of-memory redis-slots-of-memory redis-slots-of-redis redis-dial-timeout-of-memcached
		rule-fallback-local-of-memory rule-prefetch-ban rule-prefetch-bucket-of-one rule-prefetch-count-rejected
		rule-prefetch-delay rule-prefetch-hard rule-prefetch-hold-above-half rule-prefetch-hold-refills-the-burst
		rule-prefetch-leaky-bucket rule-prefetch-of-memory rule-prefetch-override
		rule-prefetch-period-of-a-millisecond rule-prefetch-period-too-long rule-prefetch-period-too-short
		store-memcached-ban-beside-a-log store-redis-ban-of-half-a-microsecond store-redis-bucket-beyond-its-numbers
		store-redis-hard-beyond-its-numbers store-redis-log-too-long store-redis-log-too-long-in-an-override
		store-redis-period-of-half-a-microsecond store-redis-window-beyond-its-numbers
		store-memcached-sliding-log store-password-file-of-memcached store-password-file-of-memory
		store-password-twice store-sentinel-password-file-of-memory store-sentinel-password-file-of-redis
		store-tls-cert-without-key store-tls-key-without-cert store-tls-of-cluster store-tls-of-memcached
		store-tls-of-memory store-tls-of-redis store-user-without-password
		store-per-second-of-memory store-per-second-of-memcached store-per-second-is-store store-per-second-password-twice
		store-per-second-user-without-password store-per-second-password-file-alone
		store-sentinel-password-twice store-sentinel-user-alone store-sentinel-password-of-redis store-tls-name-skipped
		store-srv-with-port store-srv-of-two store-srv-invalid store-srv-with-path
		store-socket-of-a-folder store-socket-with-database store-socket-percent store-socket-too-long store-socket-control
		fair-share-at-fault-without-rules fair-share-beside-listen-without-upstream fair-share-capacity-missing
		fair-share-client-is-a-mark fair-share-match-is-a-mark fair-share-client-jwt-without-keys fair-share-client-missing
		fair-share-client-region-without-database fair-share-client-user-ip-without-headers
		fair-share-client-xff-ip-without-proxies fair-share-cost-above-capacity fair-share-cost-is-a-mark
		fair-share-count-once-of-the-proxy fair-share-empty-section fair-share-max-cost-above-capacity
		fair-share-max-cost-with-number fair-share-max-cost-without-header fair-share-name-of-a-rule
		fair-share-weights-more-than-max-clients`,
	"lists: entries that are the same, or do not go together": `
		front-proxy-protocol-twice identity-trusted-proxies-twice identity-trusted-proxies-unix-twice
		fair-share-weights-name-address-twice fair-share-weights-name-host-twice key-all-with-others key-part-twice overrides-same-address-twice overrides-same-host-twice`,
	"texts: what a name, an address, a path or a URL says beyond its form": `
		fair-share-anonymous-digest fair-share-anonymous-word fair-share-client-header-with-space
		fair-share-cost-header-host fair-share-count-once-cookie fair-share-count-once-forwarded
		fair-share-count-once-host fair-share-weights-name-empty
		fair-share-weights-name-method fair-share-weights-name-network
		fair-share-weights-name-no-address fair-share-weights-name-others fair-share-weights-name-region
		fair-share-weights-name-too-long fair-share-weights-name-digest fair-share-weights-name-with-space
		admin-health-without-host admin-listen-without-host cost-header-host front-listen-systemd-name-too-long
		front-listen-systemd-name-with-colon front-listen-unix-control-character front-listen-unix-folder
		front-listen-unix-too-long front-listen-unix-with-host front-proxy-protocol-everybody
		front-proxy-protocol-host-bits front-request-id-cookie front-request-id-forwarded
		front-request-id-of-answers front-request-id-of-soft-limits front-upstream-colon-without-port
		front-upstream-grpc front-upstream-h2c-without-host front-upstream-scheme-misspelled
		front-upstream-tls-server-name-with-port front-upstream-with-query identity-trusted-proxies-everybody
		identity-trusted-proxies-host-bits identity-trusted-proxies-ipv4-in-ipv6 identity-user-ip-header-cookie
		identity-user-ip-header-is-a-list key-header-name-with-space match-descriptor-with-space
		match-descriptor-without-value match-header-name-with-space match-host-with-port
		match-method-lower-case match-method-with-space match-path-backslash match-path-control-character
		match-path-dot-segment match-path-double-slash match-path-escaped match-path-parameter-of-a-dot-segment
		match-path-parent-segment match-path-with-fragment match-path-with-query
		on-exceed-degrade-header-cookie on-exceed-degrade-header-forwarded on-exceed-degrade-header-framing
		on-exceed-degrade-header-host on-exceed-degrade-header-of-soft-limits on-exceed-location-becomes-a-host
		on-exceed-location-path-in-host on-exceed-location-path-is-host on-exceed-location-with-control-character
		on-exceed-location-with-faulty-escape on-exceed-location-with-faulty-port
		on-exceed-location-with-other-braces on-exceed-location-with-password on-exceed-location-with-space
		on-exceed-location-with-two-slashes on-exceed-location-without-host overrides-empty-value
		overrides-value-too-long proxy-listen-host-impossible proxy-listen-ipv6-without-brackets
		proxy-upstream-scheme-unknown proxy-upstream-with-password proxy-upstream-with-path
		proxy-upstream-without-host rule-name-too-long rule-name-with-space store-cluster-comma-at-end
		store-cluster-empty-host store-cluster-server-twice store-cluster-space store-cluster-too-many-servers
		store-database-of-cluster store-database-too-great store-database-with-zero store-database-word
		store-fragment store-host-bracket-not-closed store-host-impossible store-host-ip-impossible
		store-host-ipv6-without-brackets store-host-zone store-memcached-path store-memcached-user
		store-no-host-behind-user store-password-empty store-password-nothing-before-at store-password-too-long
		store-password-with-at store-password-with-percent store-password-with-question-mark
		store-password-with-slash store-password-with-space store-password-with-umlaut store-port-missing
		store-port-too-great store-port-word store-port-zero store-query store-sentinel-database-word
		store-sentinel-empty-master store-sentinel-master-impossible store-sentinel-without-master
		store-several-servers-of-redis store-tls-server-name-with-port`,
}
