// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/openapi"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// widgetWith returns a definition of Widgets with the given schema.
func widgetWith(t *testing.T, schema string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	out := crd("widgets", "Widget", true)
	props := &apiextensionsv1.JSONSchemaProps{}
	require.NoError(t, yaml.Unmarshal([]byte(schema), props))
	out.Spec.Versions[0].Schema.OpenAPIV3Schema = props
	return out
}

// condition returns a condition of the SyncTarget, as "status reason", and its message.
func (p *pair) condition(name string) (state, message string) {
	p.t.Helper()
	for _, c := range p.target().Status.Conditions {
		if c.Type == name {
			return string(c.Status) + " " + c.Reason, c.Message
		}
	}
	return "", ""
}

// register creates the SyncTarget.
func (p *pair) register() {
	p.t.Helper()
	_, err := p.up.client.Resource(syncTargets).Create(p.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": target},
	}}, metav1.CreateOptions{})
	require.NoError(p.t, err)
}

// losses returns the Losses of the Widgets.
func (p *pair) losses() []string {
	p.t.Helper()
	types := p.Status().Types
	at := slices.IndexFunc(types, func(s syncer.TypeStatus) bool { return s.Resource == widgets })
	require.GreaterOrEqual(p.t, at, 0)
	return types[at].Losses
}

// If the two sides define a type differently, the syncer reports the fields and the remedy until the definitions
// agree.
func TestTypesThatLoseFields(t *testing.T) {
	const upstream = `{type: object, properties: {
		spec: {type: object, properties: {color: {type: string}, size: {type: integer, maximum: 100}}},
		status: {type: object, properties: {ready: {type: boolean}}}}}`
	for name, test := range map[string]struct {
		downstream string
		losses     []string
		refused    bool // whether the downstream rejects an object that has all fields of the upstream schema
	}{
		"a field is missing downstream": {
			`{type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 100}}}, status: {type: object, properties: {ready: {type: boolean}}}}}`,
			[]string{"field spec.color is missing downstream"}, true,
		},
		"no field is there downstream": {
			`{type: object, properties: {spec: {type: object}, status: {type: object, properties: {ready: {type: boolean}}}}}`,
			[]string{"field spec.color is missing downstream", "field spec.size is missing downstream"}, false,
		},
		"bounds are tighter downstream": {
			`{type: object, properties: {spec: {type: object, required: [color], properties: {color: {type: string, maxLength: 5, pattern: ^a, enum: [ab]}, size: {type: integer, minimum: 1, maximum: 10}}}, status: {type: object, properties: {ready: {type: boolean}}}}}`,
			[]string{
				`spec: required is ["color"] downstream and unset upstream`, `spec.color: enum is ["ab"] downstream and unset upstream`,
				`spec.color: maxLength is 5 downstream and unset upstream`, `spec.color: pattern is ["^a"] downstream and unset upstream`,
				`spec.size: maximum is 10 downstream and 100 upstream`, `spec.size: minimum is 1 downstream and unset upstream`,
			}, true,
		},
		"a field of the status is missing upstream": {
			`{type: object, properties: {spec: {type: object, properties: {color: {type: string}, size: {type: integer, maximum: 100}}}, status: {type: object, properties: {ready: {type: boolean}, phase: {type: string}}}}}`,
			[]string{"field status.phase is missing upstream"}, false,
		},
		"the downstream takes more, and reports less": {
			`{type: object, properties: {spec: {type: object, properties: {color: {type: string}, size: {type: integer}, more: {type: string, default: x}}}, status: {type: object}}}`,
			nil, false,
		},
		"the same": {upstream, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				own, err := config.CRD("synctargets.workload.kcp.io")
				require.NoError(t, err)
				p := &pair{t: t, up: newSide(t, "up", regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{own, widgetWith(t, upstream)}}),
					down: newSide(t, "down", regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetWith(t, test.downstream)}})}
				p.register()
				p.start(syncer.Options{Heartbeat: 20 * time.Second})
				time.Sleep(time.Minute)
				require.Equal(t, test.losses, p.losses())
				state, message := p.condition("TypesCompatible")
				if test.losses == nil {
					require.Equal(t, "True Compatible", state)
					require.Empty(t, message)
					return
				}
				require.Equal(t, "False Incompatible", state)
				require.True(t, strings.HasPrefix(message, "widgets.example.org ("+strings.Join(test.losses, ", ")+")"), message)
				require.Contains(t, message, "apply the same CustomResourceDefinition on both sides")
				require.Contains(t, p.target().Status.SyncedResources, "widgets.example.org")
				p.up.create(widgets, "{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {color: abc, size: 50}}")
				p.rest()
				require.Equal(t, test.refused, p.down.get(widgets, "a") == nil)
				if test.refused {
					require.Equal(t, []string{"widgets default/a Refused"}, p.problems())
				}

				require.NoError(t, p.down.AddCRD(widgetWith(t, upstream)))
				time.Sleep(2 * time.Minute)
				require.Empty(t, p.losses())
				state, _ = p.condition("TypesCompatible")
				require.Equal(t, "True Compatible", state)
				if test.refused {
					time.Sleep(10 * time.Minute)
					require.Equal(t, "abc", field(p.down.get(widgets, "a"), "spec", "color"), "the object is sent again")
				}
			})
		})
	}
}

// undescribed is a server whose OpenAPI documents may not be read.
type undescribed struct{ region.Discovery }

func (undescribed) OpenAPIV3() openapi.Client { return forbidden{} }

type forbidden struct{ openapi.Client }

func (forbidden) Paths() (map[string]openapi.GroupVersion, error) {
	return nil, errors.New("openapi is forbidden")
}

// If the schemas of one side cannot be read, the types count as compatible and are synced.
func TestSchemasAreNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := &pair{t: t, up: newSide(t, "up", withTargets(t)), down: newSide(t, "down", regiontest.Options{})}
		p.register()
		p.down.api = region.APIOf(p.down.api.Dynamic(), p.down.api.Metadata(), undescribed{p.down.api.Discovery()})
		p.up.create(configMaps, a)
		p.start(syncer.Options{Heartbeat: 20 * time.Second})
		time.Sleep(time.Minute)
		require.NotNil(t, p.down.get(configMaps, "a"))
		state, _ := p.condition("TypesCompatible")
		require.Equal(t, "True Compatible", state)
	})
}
