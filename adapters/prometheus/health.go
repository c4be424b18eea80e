// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/region"
)

// health collects the health of the present peers. A gauge that an Observer sets would keep peers that have left.
type health struct {
	directory func() region.Directory
	healthy   *prometheus.Desc
}

func newHealth(directory func() region.Directory) *health {
	return &health{directory, prometheus.NewDesc("atoll_peer_healthy", "1 if the peer answers its probes.", []string{"peer"}, nil)}
}

// Describe implements prometheus.Collector.
func (h *health) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- h.healthy }

// Collect implements prometheus.Collector.
func (h *health) Collect(values chan<- prometheus.Metric) {
	d := h.directory()
	if d == nil {
		return
	}
	for peer := range d.Snapshot().Peers() {
		conn, err := d.Conn(peer.Name)
		values <- prometheus.MustNewConstMetric(h.healthy, prometheus.GaugeValue,
			oneIf(err == nil && conn.Health().State == region.Healthy), string(peer.Name))
	}
}
