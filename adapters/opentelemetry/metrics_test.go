// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollopentelemetry

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// jwt is a token that expires in 2065, with an invalid signature.
const jwt = "e30.eyJpYXQiOjIwMDAwMDAwMDAsImV4cCI6MzAwMDAwMDAwMH0.e30"

// connTo returns a connection with a token, which sends no request.
func connTo(t *testing.T, name region.PeerName, token string) *region.Conn {
	t.Helper()
	credentials, err := region.FromConfig(&rest.Config{Host: "https://peer.test", BearerToken: token})
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: name, Credentials: credentials}, region.ConnOptions{})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// collect returns the values of all gauges, by name and peer.
func collect(t *testing.T, reader sdkmetric.Reader) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	values := map[string]float64{}
	for _, s := range data.ScopeMetrics {
		require.Equal(t, scope, s.Scope.Name)
		for _, m := range s.Metrics {
			require.NotEmpty(t, m.Unit)
			switch gauge := m.Data.(type) {
			case metricdata.Gauge[float64]:
				for _, p := range gauge.DataPoints {
					peer, _ := p.Attributes.Value("k8s.cluster.name")
					values[m.Name+" "+peer.AsString()] = p.Value
				}
			case metricdata.Gauge[int64]:
				values[m.Name] = float64(gauge.DataPoints[0].Value)
			default:
				require.Fail(t, fmt.Sprintf("%T", m.Data))
			}
		}
	}
	return values
}

func TestMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	var directory region.Directory
	m, err := NewMetrics(MetricsOptions{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), Directory: func() region.Directory { return directory },
	})
	require.NoError(t, err)
	require.Empty(t, collect(t, reader))

	directory = region.Fixed(connTo(t, "eu", jwt), connTo(t, "us", "opaque"))
	calls := 0
	o := m.Fanout(&fanout.Observer{Backlog: func(context.Context, fanout.BacklogEvent) { calls++ }})
	o.Backlog(t.Context(), fanout.BacklogEvent{Open: 2, Oldest: time.Unix(2e9, 0)})
	require.Equal(t, map[string]float64{
		"atoll.peer.credentials.expiry_time eu": 3e9, "atoll.fanout.open_operations": 2, "atoll.fanout.oldest_open_operation_time ": 2e9,
	}, collect(t, reader))

	m.Fanout(nil).Backlog(t.Context(), fanout.BacklogEvent{})
	require.Equal(t, map[string]float64{"atoll.peer.credentials.expiry_time eu": 3e9, "atoll.fanout.open_operations": 0}, collect(t, reader))
	require.Equal(t, 1, calls)
	require.NoError(t, m.Unregister())
	require.Empty(t, collect(t, reader))
}
