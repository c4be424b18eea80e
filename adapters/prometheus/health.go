// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/region"
)

// health collects the health of the present peers, and in which time the credentials for them are valid. It is no gauge
// that an Observer sets: such a gauge would keep peers that have left.
type health struct {
	directory func() region.Directory
	healthy   *prometheus.Desc
	issued    *prometheus.Desc
	expiry    *prometheus.Desc
}

func newHealth(directory func() region.Directory) *health {
	gauge := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"peer"}, nil) }
	return &health{
		directory: directory,
		healthy:   gauge("atoll_peer_healthy", "1 if the peer answers its probes."),
		issued:    gauge("atoll_peer_credentials_issued_timestamp_seconds", "Since when the credentials for the peer that expire first are valid."),
		expiry:    gauge("atoll_peer_credentials_expiry_timestamp_seconds", "When the first of the credentials for the peer expires; not for credential plugins, which renew them."),
	}
}

// Describe implements prometheus.Collector.
func (h *health) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- h.healthy
	descriptions <- h.issued
	descriptions <- h.expiry
}

// Collect implements prometheus.Collector.
func (h *health) Collect(values chan<- prometheus.Metric) {
	d := h.directory()
	if d == nil {
		return
	}
	for peer := range d.Snapshot().Peers() {
		var of region.Health
		if conn, err := d.Conn(peer.Name); err == nil {
			of = conn.Health()
		}
		send := func(to *prometheus.Desc, value float64) {
			values <- prometheus.MustNewConstMetric(to, prometheus.GaugeValue, value, string(peer.Name))
		}
		send(h.healthy, oneIf(of.State == region.Healthy))
		if !of.Issued.IsZero() {
			send(h.issued, float64(of.Issued.Unix()))
		}
		if !of.Expires.IsZero() {
			send(h.expiry, float64(of.Expires.Unix()))
		}
	}
}
