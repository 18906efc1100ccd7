# cmake -DMODULES=a.js;b.js -DSTYLES=a.css;b.css -DOUTPUT=assets.cc -P bundle.cmake
# All modules share one scope once joined, so imports and the word `export` go; a name defined twice is a syntax error
# that the page tests find.
set(script "")
foreach(module IN LISTS MODULES)
  file(READ ${module} text)
  string(REGEX REPLACE "\nimport [^\n]*" "" text "\n${text}")
  string(REGEX REPLACE "\nexport " "\n" text "${text}")
  string(APPEND script "${text}")
endforeach()
set(style "")
foreach(sheet IN LISTS STYLES)
  file(READ ${sheet} text)
  string(APPEND style "${text}")
endforeach()
foreach(text IN ITEMS script style)
  if("${${text}}" MATCHES "</(script|style)|[)]FOVEA")
    message(FATAL_ERROR "${text}: ${CMAKE_MATCH_0} would end the element or the literal it is embedded in")
  endif()
endforeach()
file(WRITE ${OUTPUT} "namespace fovea::explain {\nextern const char* const kPageScript;\nextern const char* const kPageStyle;\n\
const char* const kPageScript = R\"FOVEA(${script})FOVEA\";\nconst char* const kPageStyle = R\"FOVEA(${style})FOVEA\";\n}  // namespace fovea::explain\n")
