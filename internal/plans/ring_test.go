// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// definitionsOf are CRDs, compiled once.
func definitionsOf(names ...string) func() (*regiontest.Definitions, error) {
	return sync.OnceValues(func() (*regiontest.Definitions, error) {
		crds := make([]*apiextensionsv1.CustomResourceDefinition, len(names))
		for i, name := range names {
			crd, err := config.CRD(name)
			if err != nil {
				return nil, err
			}
			crds[i] = crd
		}
		return regiontest.Compile(crds...)
	})
}

// serve makes servers, each with types and objects. No types are nil.
func serve(of map[string]func() (*regiontest.Definitions, error), manifests map[string][]string) func() (map[string]perturb.Server, error) {
	return func() (map[string]perturb.Server, error) {
		servers, run := map[string]perturb.Server{}, runs.Add(1)
		for name, definitions := range of {
			opts := regiontest.Options{Name: name}
			if definitions != nil {
				types, err := definitions()
				if err != nil {
					return nil, err
				}
				opts.Definitions = types
			}
			s := regiontest.NewServer(opts)
			servers[name] = host(name, s, run)
			for _, manifest := range manifests[name] {
				if err := applyTo(context.Background(), s.Config(), manifest); err != nil {
					return nil, err
				}
			}
		}
		return servers, nil
	}
}

// ringResources are the types that scripts write.
var ringResources = map[string]schema.GroupVersionResource{
	"Namespace":                {Version: "v1", Resource: "namespaces"},
	"ConfigMap":                {Version: "v1", Resource: "configmaps"},
	"Secret":                   {Version: "v1", Resource: "secrets"},
	"RegionClaim":              {Group: "kubecarrier.io", Version: "v1alpha1", Resource: "regionclaims"},
	"ServiceCluster":           {Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"},
	"Peer":                     {Group: "master.kubecarrier.io", Version: "v1alpha1", Resource: "peers"},
	"KubeCarrier":              {Group: "operator.kubecarrier.io", Version: "v1alpha1", Resource: "kubecarriers"},
	"Account":                  {Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	"SyncTarget":               {Group: "workload.kcp.io", Version: "v1alpha1", Resource: "synctargets"},
}

func decodeObject(manifest string) (*unstructured.Unstructured, schema.GroupVersionResource, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		return nil, schema.GroupVersionResource{}, fmt.Errorf("%s: %w", manifest, err)
	}
	gvr, ok := ringResources[o.GetKind()]
	if !ok {
		return nil, gvr, fmt.Errorf("no resource is known for kind %q", o.GetKind())
	}
	return o, gvr, nil
}

// applyTo writes an object as kubectl apply --server-side does.
func applyTo(ctx context.Context, config *rest.Config, manifest string) error {
	o, gvr, err := decodeObject(manifest)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	c := client.Resource(gvr).Namespace(o.GetNamespace())
	if err := leaves(ctx, c, o.GetName()); err != nil {
		return err
	}
	_, err = c.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "user", Force: true})
	return err
}

// applies is a step in which a user applies an object, once none of that name is on its way out.
func applies(name, server, manifest string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		return applyTo(ctx, access(server), manifest)
	}}
}

// deletes is a step in which a user deletes an object.
func deletes(name, server, manifest string) perturb.Step {
	return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
		o, gvr, err := decodeObject(manifest)
		if err != nil {
			return err
		}
		client, err := dynamic.NewForConfig(access(server))
		if err != nil {
			return err
		}
		err = client.Resource(gvr).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}}
}

// startAll runs the parts of one program until ctx ends or one of them fails, and waits for all.
func startAll(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(parts))
	for i, part := range parts {
		wg.Go(func() {
			defer cancel()
			errs[i] = part(ctx)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// ringOf is a ring of peers that do not change. It has to be started.
func ringOf(access perturb.Access, names ...region.PeerName) (*region.Ring, error) {
	var all []region.Peer
	for _, name := range names {
		creds, err := region.FromConfig(access(string(name)))
		if err != nil {
			return nil, err
		}
		all = append(all, region.Peer{Name: name, Credentials: creds})
	}
	source, err := region.FromPeers(all...)
	if err != nil {
		return nil, err
	}
	return region.NewRing(source, region.Options{})
}
