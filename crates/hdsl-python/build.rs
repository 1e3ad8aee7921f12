//! Linker flags that an extension module needs on macOS; nothing elsewhere.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "macos") {
        pyo3_build_config::add_extension_module_link_args();
    }
}
