// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/atoll-dev/atoll/region"
)

// Options configure a Source. Namespace and Plugins are required.
type Options struct {
	// Namespace is the namespace of the ClusterProfiles: one inventory.
	Namespace string
	// Selector is a label selector for the profiles, such as "x-k8s.io/cluster-manager=fleet". Empty: all.
	Selector string
	// Plugins are the credential plugins that may run. For each profile, the first of them that the profile names as an
	// access provider is used.
	Plugins []Plugin
	// Provider and Region select both parts of a peer's region. Zero: the property RegionsProperty lists the regions;
	// without it the peer serves none.
	Provider, Region Field
	// Trust allows content of a profile's cluster entry that is otherwise rejected: Server, Proxy and Insecure. Exec and
	// Env stay empty, because Plugins has them.
	Trust region.Trust

	// Logger receives log lines. Zero: the logger of Run's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// checked returns a copy of o with the complete Trust, or the error of a wrong option.
func (o Options) checked() (Options, error) {
	if o.Namespace == "" {
		return o, errors.New("clusterinventory: Options.Namespace is empty: give the namespace of the ClusterProfiles")
	}
	if _, err := labels.Parse(o.Selector); err != nil {
		return o, fmt.Errorf("clusterinventory: Options.Selector: %w", err)
	}
	if len(o.Plugins) == 0 {
		return o, errors.New("clusterinventory: Options.Plugins is empty: without a plugin no profile gives credentials")
	}
	if len(o.Trust.Exec) > 0 || len(o.Trust.Env) > 0 {
		return o, errors.New("clusterinventory: Options.Trust has Exec or Env: allow programs and variables in Options.Plugins")
	}
	o.Plugins = copyPlugins(o.Plugins)
	names := map[string]bool{}
	for i := range o.Plugins {
		p := &o.Plugins[i]
		if err := p.check(); err != nil {
			return o, fmt.Errorf("clusterinventory: Options.Plugins[%d]: %w", i, err)
		}
		if names[p.Name] {
			return o, fmt.Errorf("clusterinventory: Options.Plugins[%d]: the Name %q is given twice", i, p.Name)
		}
		names[p.Name] = true
	}
	if o.Provider != (Field{}) || o.Region != (Field{}) {
		if err := o.Provider.check(); err != nil {
			return o, fmt.Errorf("clusterinventory: Options.Provider %w", err)
		}
		if err := o.Region.check(); err != nil {
			return o, fmt.Errorf("clusterinventory: Options.Region %w", err)
		}
	}
	o.Trust = trustIn(o.Trust, o.Plugins)
	return o, nil
}

// credentialsOf returns credentials for the cluster of p, by the first plugin that p names.
func (o *Options) credentialsOf(p *inventory.ClusterProfile) (region.Credentials, error) {
	var names []string
	for i := range o.Plugins {
		plugin := &o.Plugins[i]
		names = append(names, plugin.Name)
		entry, field := provider(p, plugin.Name)
		if entry == nil {
			continue
		}
		creds, err := plugin.credentials(entry, o.Trust)
		if refused, ok := errors.AsType[*region.FieldError](err); ok {
			located := *refused
			located.Field = field + "." + refused.Field
			return region.Credentials{}, &located
		}
		return creds, err
	}
	return region.Credentials{}, &region.FieldError{Field: "status.accessProviders", Reason: "has no provider that this program may use",
		Accept: fmt.Sprintf("one of %q", names)}
}
