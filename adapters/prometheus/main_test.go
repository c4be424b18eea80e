// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// newMetrics returns Metrics that are registered on their own registry.
func newMetrics(t *testing.T, opts Options) (*Metrics, *prometheus.Registry) {
	t.Helper()
	m, err := New(opts)
	require.NoError(t, err)
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(m))
	return m, r
}

// exposition returns all metrics of a registry, or those of the given names, as text.
func exposition(t *testing.T, r *prometheus.Registry, names ...string) string {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	var text strings.Builder
	for _, f := range families {
		if len(names) == 0 || slices.Contains(names, f.GetName()) {
			_, err := expfmt.MetricFamilyToText(&text, f)
			require.NoError(t, err)
		}
	}
	return text.String()
}

// value returns the value of a metric.
func value(c prometheus.Collector) int { return int(testutil.ToFloat64(c)) }

// A recorded Observer counts the calls of each of its funcs.
type recorded[O any] struct {
	observer *O
	calls    map[string]int
}

func record[O any]() recorded[O] {
	r := recorded[O]{new(O), map[string]int{}}
	v := reflect.ValueOf(r.observer).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		r.calls[name] = 0
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func([]reflect.Value) []reflect.Value {
			r.calls[name]++
			results := make([]reflect.Value, v.Field(i).Type().NumOut())
			for j := range results {
				results[j] = reflect.Zero(v.Field(i).Type().Out(j))
			}
			return results
		}))
	}
	return r
}

// observerCase is the Observer of one package, with a func that calls each of its funcs.
type observerCase struct {
	name string
	// fire makes an Observer and calls its funcs. It returns how often each func of the next Observer was called; with
	// alone, there is no next Observer.
	fire func(t *testing.T, m *Metrics, alone bool) map[string]int
}

func of[O any](name string, observer func(*Metrics, *O) *O, fire func(context.Context, *O)) observerCase {
	return observerCase{name, func(t *testing.T, m *Metrics, alone bool) map[string]int {
		t.Helper()
		next := record[O]()
		if alone {
			next.observer = nil
		}
		fire(t.Context(), observer(m, next.observer))
		return next.calls
	}}
}
