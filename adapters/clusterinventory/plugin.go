// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/atoll-dev/atoll/region"
)

// Plugin is a credential plugin that this machine may run for ClusterProfiles. A profile names a Plugin and never a
// program.
type Plugin struct {
	// Name is the name of the access provider in ClusterProfiles.
	Name string
	// Exec is the program to run. Command is an absolute path. APIVersion is client.authentication.k8s.io/v1 or v1beta1.
	// With ProvideClusterInfo, the plugin receives the extension client.authentication.k8s.io/exec of the profile.
	Exec clientcmdv1.ExecConfig
	// Args appends the arguments in the profile's extension
	// clusterprofiles.multicluster.x-k8s.io/exec/additional-args. False: a profile adds no argument.
	Args bool
	// Env are the names of variables that the profile may set by its extension
	// clusterprofiles.multicluster.x-k8s.io/exec/additional-envs, unless Exec.Env sets them. Other variables of a profile
	// are ignored. Never allow variables such as PATH or LD_PRELOAD, which choose the code that runs.
	Env []string
}

// The extensions of a profile's cluster entry that change how a plugin runs.
const (
	argsExtension = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
	envExtension  = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"
)

// copyPlugins returns plugins that share nothing with the given ones.
func copyPlugins(plugins []Plugin) []Plugin {
	copied := slices.Clone(plugins)
	for i := range copied {
		copied[i].Exec = *plugins[i].Exec.DeepCopy()
		copied[i].Env = slices.Clone(plugins[i].Env)
	}
	return copied
}

// trustIn adds what the plugins may run, and with which variables, to t.
func trustIn(t region.Trust, plugins []Plugin) region.Trust {
	t.Exec, t.Env = slices.Clone(t.Exec), slices.Clone(t.Env)
	for _, p := range plugins {
		t.Exec = append(t.Exec, p.Exec.Command)
		t.Env = append(t.Env, p.Env...)
		for _, v := range p.Exec.Env {
			t.Env = append(t.Env, v.Name)
		}
	}
	return t
}

// check returns why the plugin can never be used.
func (p *Plugin) check() error {
	if p.Name == "" {
		return errors.New("the Name is empty: give the name of the access provider in ClusterProfiles")
	}
	if !filepath.IsAbs(p.Exec.Command) {
		return fmt.Errorf("the Exec.Command is %q: give the absolute path of the program", p.Exec.Command)
	}
	_, err := p.credentials(&inventory.AccessProvider{Cluster: clientcmdv1.Cluster{Server: "https://cluster.invalid"}}, trustIn(region.Trust{}, []Plugin{*p}))
	return err
}

// credentials returns credentials for the cluster of an access provider. They share nothing with the plugin, with the
// entry, or with the credentials of another profile.
func (p *Plugin) credentials(entry *inventory.AccessProvider, trust region.Trust) (region.Credentials, error) {
	exec, err := p.execFor(entry)
	if err != nil {
		return region.Credentials{}, err
	}
	const name = "profile"
	data, err := json.Marshal(clientcmdv1.Config{
		Clusters:  []clientcmdv1.NamedCluster{{Name: name, Cluster: entry.Cluster}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: clientcmdv1.AuthInfo{Exec: exec}}},
		Contexts:  []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: name}}},
	})
	if err != nil {
		return region.Credentials{}, &region.FieldError{Field: "cluster", Reason: "cannot be encoded", Err: err}
	}
	creds, err := region.ParseKubeconfig(data, trust)
	if field, ok := errors.AsType[*region.FieldError](err); ok {
		renamed := *field
		renamed.Field = strings.TrimPrefix(field.Field, "clusters[0].")
		return region.Credentials{}, &renamed
	}
	return creds, err
}

// execFor returns a copy of the plugin's configuration, with the arguments and variables of the profile that the plugin
// allows.
func (p *Plugin) execFor(entry *inventory.AccessProvider) (*clientcmdv1.ExecConfig, error) {
	exec := p.Exec.DeepCopy()
	var args []string
	var env map[string]string
	for _, e := range []struct {
		name   string
		used   bool
		to     any
		accept string
	}{{argsExtension, p.Args, &args, "a list of strings"}, {envExtension, len(p.Env) > 0, &env, "a map of strings"}} {
		raw, err := extension(entry, e.name)
		if err != nil {
			return nil, err
		}
		if e.used && raw != nil {
			if err := json.Unmarshal(raw, e.to); err != nil {
				return nil, &region.FieldError{Field: extensionField(e.name), Reason: "cannot be read", Accept: e.accept, Err: err}
			}
		}
	}
	for _, a := range args {
		if strings.ContainsRune(a, 0) {
			return nil, &region.FieldError{Field: extensionField(argsExtension), Reason: "has an argument with a NUL", Accept: "text"}
		}
	}
	exec.Args = append(exec.Args, args...)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(p.Env))) {
		value, ok := env[name]
		fixed := slices.ContainsFunc(exec.Env, func(v clientcmdv1.ExecEnvVar) bool { return v.Name == name })
		if ok && !fixed {
			if strings.ContainsRune(value, 0) {
				return nil, &region.FieldError{Field: extensionField(envExtension), Reason: "has a value with a NUL", Accept: "text"}
			}
			exec.Env = append(exec.Env, clientcmdv1.ExecEnvVar{Name: name, Value: value})
		}
	}
	return exec, nil
}

// extension returns the content of the only extension of this name, or nil.
func extension(entry *inventory.AccessProvider, name string) ([]byte, error) {
	var raw []byte
	for i := range entry.Cluster.Extensions {
		if e := &entry.Cluster.Extensions[i]; e.Name == name {
			if raw != nil {
				return nil, &region.FieldError{Field: extensionField(name), Reason: "is listed twice", Accept: "one extension of each name"}
			}
			raw = e.Extension.Raw
		}
	}
	return raw, nil
}

func extensionField(name string) string { return "cluster.extensions[" + name + "]" }
