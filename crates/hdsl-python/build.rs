//! Linker flags that an extension module needs on macOS; nothing elsewhere.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
