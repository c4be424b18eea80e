// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/maintest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

type example struct {
	metav1.TypeMeta `json:",inline"`

	Address  string           `json:"address"`
	Interval *metav1.Duration `json:"interval"`
	Programs []string         `json:"programs"`
	Format   string           `json:"format"`
	Level    int              `json:"level"`
}

func (e *example) complete() {
	Default(&e.Address, ":80")
	Default(&e.Format, "json")
	DefaultDuration(&e.Interval, time.Second)
}

func (e *example) check() Faults {
	var f Faults
	f.Type(e.TypeMeta, "v1", "Example")
	f.Address("address", e.Address)
	f.Between("interval", e.Interval, time.Second, time.Minute)
	f.Programs("programs", e.Programs)
	f.Log(e.Format, e.Level)
	return f
}

func form(e *example) Form { return Form{e, e.complete, e.check} }

func TestDefaults(t *testing.T) {
	t.Parallel()
	var e example
	require.NoError(t, Parse([]byte("{apiVersion: v1, kind: Example}"), form(&e)))
	require.Equal(t, ":80", e.Address)
	require.Equal(t, time.Second, e.Interval.Duration)
}

// Every fault has a line, and each line names the file.
func TestEveryFaultIsALine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "example.yaml")
	require.NoError(t, os.WriteFile(path, []byte("{address: x, interval: 1h, programs: [sh], format: xml, level: 11}"), 0o600))
	err := Load(path, form(&example{}))
	require.EqualError(t, err, path+`: apiVersion: is ""; accepted: v1
`+path+`: kind: is ""; accepted: Example
`+path+`: address: "x" is no address; accepted: HOST:PORT or :PORT
`+path+`: interval: is 1h0m0s; accepted: 1s to 1m0s
`+path+`: programs[0]: "sh" is not an absolute path; accepted: the absolute path of a program
`+path+`: log.format: is "xml"; accepted: json or text
`+path+`: log.level: is 11; accepted: 0 to 10`)
	require.ErrorContains(t, Parse([]byte("{apiVersion: v1, kind: Example, address: ':x'}"), form(&example{})), "has no valid port")
}

func TestUnknownAndRepeatedFields(t *testing.T) {
	t.Parallel()
	require.EqualError(t, Parse([]byte("{kind: Example, place: x}"), form(&example{})), `configuration: unknown field "place"`)
	require.ErrorContains(t, Parse([]byte("kind: Example\nkind: Example\n"), form(&example{})), "already set")
	require.ErrorIs(t, Load(filepath.Join(t.TempDir(), "none"), form(&example{})), os.ErrNotExist)
}
